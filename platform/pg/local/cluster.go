package local

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
)

const connectTimeout = 5 * time.Second

// marker is the file that initialize writes once initdb has finished. If the file is missing, the
// next start deletes the data.
const marker = "ready"

// initialize creates the cluster unless a complete one exists. The initdb process inherits the
// processLock. If this process is killed, the next start therefore waits for initdb to end.
func (p place) initialize(ctx context.Context, bin binaries, durable bool, processes *os.File) error {
	_, err := os.Stat(p.join(marker))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, "local.Start", "The folder "+p.root+" cannot be read.", err)
	}
	if err := os.RemoveAll(p.data()); err != nil {
		return fault.Wrap(fault.Unavailable, "local.Start",
			"The remains of an interrupted start in "+p.data()+" cannot be removed.", err)
	}
	args := []string{
		"-D", p.accountPath("data"), "-U", superuser, "-A", "scram-sha-256",
		"--pwfile", p.accountPath("super.password"), "-E", "UTF8", "--no-locale",
	}
	if !durable {
		args = append(args, "--no-sync")
	}
	if out, err := p.command(ctx, processes, bin.path("initdb"), args...).CombinedOutput(); err != nil {
		return fault.Wrap(fault.Unavailable, "local.Start",
			"Postgres data cannot be created in "+p.data()+": "+lastLine(string(out)), err)
	}
	if err := p.write(marker, []byte("initdb finished\n")); err != nil {
		return fault.Wrap(fault.Unavailable, "local.Start", "The folder "+p.root+" cannot be written to.", err)
	}
	return nil
}

// failureReason returns the first message in the server's log that explains why the server ended,
// or the log's last line if there is no such message. It skips messages to clients that connect
// while the server starts or stops. portTaken reports whether the port was in use.
func (p place) failureReason() (why string, portTaken bool) {
	b, err := os.ReadFile(p.join("server.log"))
	if err != nil {
		return "it left no log.", false
	}
	text := string(b)
	portTaken = strings.Contains(text, "Address already in use")
	for line := range strings.Lines(text) {
		for _, level := range []string{"FATAL:", "PANIC:"} {
			_, after, ok := strings.Cut(line, level)
			if after = strings.TrimSpace(after); ok && !strings.HasPrefix(after, "the database system is ") {
				return after, portTaken
			}
		}
	}
	if why = lastLine(text); why == "" {
		why = "it exited without writing to its log."
	}
	return why, portTaken
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// CreateOwner creates the role "crier" and a database with the same name, owned by the role, unless
// they exist. It also sets the role's password. As with managed services, the role has CREATEROLE
// and is not a superuser.
//
// CreateOwner returns the URL for connecting to the database as that role. It returns fault.Invalid
// if superURL cannot be parsed, and fault.Unavailable if Postgres does not respond or rejects a
// statement.
func CreateOwner(ctx context.Context, superURL, password string) (string, error) {
	address, err := url.Parse(superURL)
	if err != nil { // err may contain the password
		return "", fault.New(fault.Invalid, "local.CreateOwner", "The superuser's address cannot be read.")
	}
	c, err := pgx.Connect(ctx, superURL)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, "local.CreateOwner", "The superuser cannot connect to Postgres.", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if err := makeOwner(ctx, c, password); err != nil {
		return "", fault.Wrap(fault.Unavailable, "local.CreateOwner", "The owner of the database cannot be created.", err)
	}
	address.User, address.Path = url.UserPassword(owner, password), "/"+database
	return address.String(), nil
}

func makeOwner(ctx context.Context, c *pgx.Conn, password string) error {
	var role, db bool
	const exist = `select exists (select from pg_roles where rolname = $1),
		exists (select from pg_database where datname = $2)`
	err := c.QueryRow(ctx, exist, owner, database).Scan(&role, &db)
	if err != nil {
		return err
	}
	if !role {
		if _, err := c.Exec(ctx, "create role "+owner+" login createrole"); err != nil {
			return err
		}
	}
	var alter string // ALTER ROLE takes no parameters
	const format = "select format('alter role %I password %L', $1::text, $2::text)"
	if err := c.QueryRow(ctx, format, owner, password).Scan(&alter); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, alter); err != nil {
		return err
	}
	if db {
		return nil
	}
	_, err = c.Exec(ctx, "create database "+database+" owner "+owner)
	return err
}

// connectable returns an error if the server does not accept a connection within connectTimeout.
func connectable(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return c.Close(ctx)
}
