package local

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"crier/platform/clock"
	"crier/platform/fault"
)

// account is the system account that Postgres runs as. It is nil unless this process runs as root,
// because Postgres refuses to run as root.
type account struct{ uid, gid uint32 }

// place is a folder with one cluster and its passwords, locks and log.
type place struct {
	root string
	as   *account
	// handle is the opened folder. Through it, an account that cannot enter the folder's parents
	// can still access the folder. handle is nil if there is no account, or if the system is not
	// Linux.
	handle *os.File
}

func (p place) join(name string) string { return filepath.Join(p.root, name) }

func (p place) data() string { return p.join("data") }

func (p place) pidName() string { return p.join("data/postmaster.pid") }

// handleFD is the descriptor through which Postgres programs inherit the handle. Descriptor 3 is
// the lock file.
const handleFD = 4

// accountPath returns a path through which the account can open a file in the folder. The account
// often cannot enter one of the folder's parents, such as /root. A path that begins at an inherited
// descriptor needs no access to the parents.
func (p place) accountPath(name string) string {
	if p.handle == nil {
		return p.join(name)
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(handleFD), name)
}

// openPlace opens the folder cfg.Dir and creates it if necessary. The caller must call close.
func openPlace(cfg Config) (place, error) {
	as, err := unprivileged()
	if err != nil {
		return place{}, err
	}
	p, err := openFolder(cfg.Dir, as)
	if err != nil {
		return place{}, fault.Wrap(fault.Unavailable, "local.Start",
			"The folder "+cfg.Dir+" cannot be used for Postgres data.", err)
	}
	return p, nil
}

func openFolder(dir string, as *account) (place, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return place{}, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return place{}, err
	}
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		return place{}, err
	}
	p := place{root: root, as: as}
	if as == nil {
		return p, nil
	}
	if err := errors.Join(os.Chown(root, int(as.uid), int(as.gid)), os.Chmod(root, 0o700)); err != nil {
		return place{}, err
	}
	if runtime.GOOS == "linux" {
		p.handle, err = os.Open(root)
	}
	return p, err
}

// close closes the folder. After that, no Postgres program can be started in it.
func (p place) close() {
	if p.handle != nil {
		_ = p.handle.Close() // nothing is written through it, and it may be closed already
	}
}

// unprivileged returns the account for running Postgres if this process runs as root. Otherwise, it
// returns nil.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 != nil || err2 != nil {
			continue
		}
		return &account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fault.New(fault.Unavailable, "local.Start", "Postgres does not run as root, and there is no user "+
		"postgres or nobody to run it as: start as another user, or set DATABASE_URL.")
}

// command returns a command that runs a Postgres program in the folder, as the folder's account and
// with a fixed environment. The program inherits the processLock and is killed when ctx ends.
func (p place) command(ctx context.Context, processes *os.File, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.Dir = p.root
	cmd.ExtraFiles = []*os.File{processes}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if p.as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.as.uid, Gid: p.as.gid}
	}
	if p.handle != nil {
		// The child changes to the folder before exec, as the account. At that point, it still has
		// this process's descriptors.
		cmd.Dir = filepath.Join("/proc/self/fd", strconv.Itoa(int(p.handle.Fd())))
		cmd.ExtraFiles = append(cmd.ExtraFiles, p.handle)
	}
	return cmd
}

// secret returns the password in the named file. The first call generates a random password and
// writes the file.
func (p place) secret(name string) (string, error) {
	unusable := func(err error) error {
		return fault.Wrap(fault.Unavailable, "local.Start", "The password file "+p.join(name)+" cannot be used.", err)
	}
	b, err := os.ReadFile(p.join(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", unusable(err)
	}
	if len(b) > 0 {
		return string(b), nil
	}
	password := rand.Text()
	if err := p.write(name, []byte(password)); err != nil {
		return "", unusable(err)
	}
	return password, nil
}

// write replaces a file atomically. Only the account that Postgres runs as may read the file.
func (p place) write(name string, b []byte) error {
	temp := p.join(name + ".new")
	if err := os.WriteFile(temp, b, 0o600); err != nil {
		return err
	}
	if p.as != nil {
		if err := os.Chown(temp, int(p.as.uid), int(p.as.gid)); err != nil {
			return err
		}
	}
	return os.Rename(temp, p.join(name))
}

// processLock is the name of a lock that all of a server's processes inherit. The lock is free only
// once all of these processes have ended. The process id in postmaster.pid cannot show this,
// because the id may have been reused.
const processLock = "processes"

// lock takes one of the folder's locks. If the lock is held and wait is true, lock waits for it
// until ctx ends. If the lock is still held, lock returns fault.Conflict. Closing the file releases
// the lock.
func (p place) lock(ctx context.Context, name string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(p.join(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "local.Start",
			"The lock file "+p.join(name)+" cannot be opened.", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !wait || clock.Sleep(ctx, poll) != nil {
			_ = f.Close() // nothing was written
			return nil, fault.Wrap(fault.Conflict, "local.Start",
				"Another run is using the Postgres data in "+p.root+": stop it, or use another folder.", err)
		}
	}
}

// end stops the server in the folder with a fast shutdown. If ctx ends first, an immediate shutdown
// follows. end returns the processLock once all processes have ended. It never sends SIGKILL, which
// would leave backends running.
func (p place) end(ctx context.Context) (*os.File, error) {
	lock, err := p.signal(ctx, syscall.SIGINT)
	if err == nil || ctx.Err() == nil {
		return lock, err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateWait)
	defer cancel()
	lock, err = p.signal(after, syscall.SIGQUIT)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "local.Stop", "Postgres in "+p.root+" is still stopping.", err)
	}
	return lock, nil
}

// signal sends sig to the postmaster repeatedly until it and all its children have ended, and then
// takes the processLock.
func (p place) signal(ctx context.Context, sig syscall.Signal) (*os.File, error) {
	for {
		lock, err := p.lock(ctx, processLock, false)
		if !fault.Is(err, fault.Conflict) {
			return lock, err
		}
		if pid, _ := p.pidFile(); pid > 0 {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
		if err := clock.Sleep(ctx, poll); err != nil {
			return nil, err
		}
	}
}

// pidFile returns the process id and the port in postmaster.pid. They are 0 if the file is absent
// or incomplete.
func (p place) pidFile() (pid, port int) {
	b, err := os.ReadFile(p.pidName())
	if err != nil {
		return 0, 0
	}
	number := func(line string) int {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return 0
		}
		return n
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 4 {
		return number(lines[0]), 0
	}
	return number(lines[0]), number(lines[3])
}
