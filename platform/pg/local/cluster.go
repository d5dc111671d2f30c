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

// marker says that initdb finished; without it the folder is made again.
const marker = "ready"

// initialize makes the cluster, unless it is there and whole. What it starts inherits the lock of processes.
func (p place) initialize(ctx context.Context, bin binaries, durable bool, processes *os.File) error {
	_, err := os.Stat(p.join(marker))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, "local.Start", "The folder "+p.root+" cannot be read.", err)
	}
	if err := os.RemoveAll(p.data()); err != nil {
		return fault.Wrap(fault.Unavailable, "local.Start", "What an interrupted start left in "+p.data()+" cannot be removed.", err)
	}
	args := []string{"-D", p.seen("data"), "-U", superuser, "-A", "scram-sha-256", "--pwfile", p.seen("super.password"), "-E", "UTF8", "--no-locale"}
	if !durable {
		args = append(args, "--no-sync")
	}
	// The next start waits for it by the lock when we are killed.
	if out, err := p.command(ctx, processes, bin.path("initdb"), args...).CombinedOutput(); err != nil {
		return fault.Wrap(fault.Unavailable, "local.Start", "Postgres data cannot be made in "+p.data()+": "+lastLine(string(out)), err)
	}
	if err := p.write(marker, []byte("initdb finished\n")); err != nil {
		return fault.Wrap(fault.Unavailable, "local.Start", "The folder "+p.root+" cannot be written.", err)
	}
	return nil
}

// lastWords is the reason in the server's log, and whether it is a taken port.
func (p place) lastWords() (why string, portTaken bool) {
	b, err := os.ReadFile(p.join("server.log"))
	if err != nil {
		return "it left no log.", false
	}
	text := string(b)
	portTaken = strings.Contains(text, "Address already in use")
	for line := range strings.Lines(text) {
		if _, after, ok := strings.Cut(line, "FATAL:"); ok {
			return strings.TrimSpace(after), portTaken
		}
	}
	return lastLine(text), portTaken
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// Own gives a server its owner as managed services do: a login with CREATEROLE that is no superuser and owns the
// database "crier". It returns the owner's address of that database and may be repeated.
func Own(ctx context.Context, superURL, password string) (string, error) {
	address, err := url.Parse(superURL)
	if err != nil {
		return "", fault.New(fault.Invalid, "local.Own", "The superuser's address cannot be read.") // the cause may hold the password
	}
	c, err := pgx.Connect(ctx, superURL)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, "local.Own", "The superuser cannot connect to Postgres.", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if err := makeOwner(ctx, c, password); err != nil {
		return "", fault.Wrap(fault.Unavailable, "local.Own", "The owner of the database cannot be made.", err)
	}
	address.User, address.Path = url.UserPassword(owner, password), "/"+database
	return address.String(), nil
}

func makeOwner(ctx context.Context, c *pgx.Conn, password string) error {
	var role, db bool
	err := c.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1), exists (select from pg_database where datname = $2)`,
		owner, database).Scan(&role, &db)
	if err != nil {
		return err
	}
	if !role {
		if _, err := c.Exec(ctx, "create role "+owner+" login createrole"); err != nil {
			return err
		}
	}
	var alter string // a utility statement takes no parameters
	if err := c.QueryRow(ctx, "select format('alter role %I password %L', $1::text, $2::text)", owner, password).Scan(&alter); err != nil {
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

func connectable(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return c.Close(ctx)
}
