package dbtest

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/pg/local"
)

const startLimit = 3 * time.Minute

// server is the Postgres server that holds the test databases.
type server struct {
	// owner is the URL of the maintenance database for a login with CREATEDB and CREATEROLE.
	owner string
	// super is the URL of the same database for a superuser, or "" if none is known.
	super string
}

// shared returns the server, which is chosen once per test process.
var shared = sync.OnceValues(func() (server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	s, err := choose(ctx)
	if err != nil {
		return server{}, err
	}
	return s, sweep(ctx, s)
})

func choose(ctx context.Context) (server, error) {
	if given, ok := env.OS()("TEST_DATABASE_URL"); ok && given != "" {
		if u, err := url.Parse(given); err != nil || u.Host == "" {
			return server{}, fault.New(fault.Invalid, "dbtest.choose",
				"TEST_DATABASE_URL must have the form postgres://user:password@host:port/database.")
		}
		super, _ := env.OS()("TEST_DATABASE_SUPER_URL")
		return server{owner: given, super: super}, nil
	}
	s, localErr := fromLocal(ctx)
	if localErr == nil {
		return s, nil
	}
	s, dockerErr := fromDocker(ctx)
	if dockerErr == nil {
		return s, nil
	}
	return server{}, errors.Join(localErr, dockerErr)
}

// home returns the folder of the shared cluster and the folder in which its users register.
//
// They are in memory if there is enough of it, because each test creates and drops a database of
// several hundred files. On ext4, which searches all inodes deleted in the last seconds for each
// new file, that takes longer than all statements of the tests.
func home() (dir, users string, err error) {
	cache, ok := memory()
	if !ok {
		if cache, err = os.UserCacheDir(); err != nil {
			return "", "", err
		}
		cache = filepath.Join(cache, "crier")
	}
	dir = filepath.Join(cache, "test-postgres")
	return dir, dir + "-users", nil
}

const (
	memoryRoot = "/dev/shm"
	// leastMemory is more than the databases of all concurrent tests take, in bytes.
	leastMemory = 4 << 30
)

// memory returns a folder of this user in memory, and false if there is none or too little memory.
// It reuses a folder that exists, so that all processes of a run choose the same one.
func memory() (dir string, ok bool) {
	dir = filepath.Join(memoryRoot, "crier-"+strconv.Itoa(os.Getuid()))
	if owned(dir) {
		return dir, true
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(memoryRoot, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC ||
		fs.Bavail*uint64(fs.Bsize) < leastMemory {
		return "", false
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", false
	}
	return dir, owned(dir)
}

// owned returns whether dir is a folder that only this user may write to. Everybody may write to
// its parent folder.
func owned(dir string) bool {
	var st unix.Stat_t
	err := unix.Lstat(dir, &st)
	return err == nil && st.Mode == unix.S_IFDIR|0o700 && int(st.Uid) == os.Getuid()
}

// trackNothing is the setting that limits pg_stat_statements to the databases of TrackStatements.
const trackNothing = "pg_stat_statements.track=none"

func config(dir string) local.Config {
	return local.Config{Dir: dir, Log: slog.New(slog.DiscardHandler), Detached: true,
		Preload: []string{"pg_stat_statements"}, Extra: []string{
			"synchronous_commit=off", "max_connections=1000", "shared_buffers=64MB", "autovacuum=off",
			"max_wal_size=256MB", trackNothing,
		},
		// In the tests, half of the server's work is filling the memory of new processes with the
		// catalog. Huge pages cut the processor time of that by a fifth. C libraries other than
		// glibc ignore the setting.
		Env: []string{"GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=4194304"}}
}

func fromLocal(ctx context.Context) (server, error) {
	dir, users, err := home()
	if err != nil {
		return server{}, err
	}
	// Register first, so that the watcher does not stop the cluster in the meantime.
	if err := signIn(users); err != nil {
		return server{}, err
	}
	pg, err := local.Start(ctx, config(dir))
	if err != nil {
		return server{}, err
	}
	if !pg.Joined() {
		if err := watch(pg, users); err != nil {
			return server{}, err
		}
	}
	super := pg.SuperURL("postgres")
	return server{owner: pg.URL("crier"), super: super}, allowDatabases(ctx, super)
}

func signIn(users string) error {
	if err := os.MkdirAll(users, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(users, strconv.Itoa(os.Getpid())), nil, 0o600)
}

// watcher is a shell script that stops the postmaster $1 of folder $2 once none of the processes
// registered in folder $3 has been running for ten minutes.
const watcher = `idle=0
while sleep 15; do
	[ "$(head -n 1 "$2/data/postmaster.pid" 2>/dev/null)" = "$1" ] || exit 0
	idle=$((idle + 1))
	for f in "$3"/*; do
		if kill -0 "${f##*/}" 2>/dev/null; then idle=0; else rm -f "$f"; fi
	done
	if [ "$idle" -ge 40 ]; then kill -INT "$1"; fi
done`

// watch starts the watcher, which outlives this process, like the cluster.
func watch(pg *local.Server, users string) error {
	cmd := exec.Command("/bin/sh", "-c", watcher, "crier-test-postgres-watcher", strconv.Itoa(pg.PID()), pg.Dir(),
		users)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// Stop stops the shared cluster and deletes it if it is in memory. It returns the errors of
// local.Stop. A cluster that is not running is not an error.
func Stop(ctx context.Context) error {
	dir, _, err := home()
	if err != nil {
		return err
	}
	if err := local.Stop(ctx, config(dir)); err != nil {
		return err
	}
	if in, ok := memory(); ok {
		return os.RemoveAll(in)
	}
	return nil
}

func allowDatabases(ctx context.Context, super string) error {
	c, err := pgx.Connect(ctx, super)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	// Only if it is missing, because processes that start at the same time would conflict on the
	// row.
	_, err = c.Exec(ctx, `do $$ begin
		if not (select rolcreatedb from pg_roles where rolname = 'crier') then
			perform pg_advisory_xact_lock(7);
			alter role crier createdb;
		end if;
	end $$`)
	return err
}
