package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"crier/platform/clock"
	"crier/platform/fault"
)

// rootHome holds what root keeps for an account that cannot reach root's own folders.
const rootHome = "/var/lib/crier"

// account is whom Postgres runs as when we are root, which it refuses; nil means as ourselves.
type account struct{ uid, gid uint32 }

// place is one folder with one cluster and what belongs to it.
type place struct {
	root string
	as   *account
}

func (p place) join(name string) string { return filepath.Join(p.root, name) }
func (p place) data() string            { return p.join("data") }
func (p place) pidName() string         { return p.join("data/postmaster.pid") }

func openPlace(cfg Config) (place, error) {
	as, err := unprivileged()
	if err != nil {
		return place{}, err
	}
	root, err := reachable(cfg.Dir, as, cfg.Log)
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err == nil && as != nil {
		err = errors.Join(os.Chown(root, int(as.uid), int(as.gid)), os.Chmod(root, 0o700))
	}
	if err != nil {
		return place{}, fault.Wrap(fault.Unavailable, "local.Start", "The folder "+cfg.Dir+" cannot be used for Postgres data.", err)
	}
	return place{root: root, as: as}, nil
}

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
		if err1 == nil && err2 == nil {
			return &account{uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, fault.New(fault.Unavailable, "local.Start", "Postgres does not run as root, and there is no user postgres or nobody to run it as: start as another user, or set DATABASE_URL.")
}

// reachable is dir, or a folder for it under rootHome when the account may not walk down to dir.
// Folders of ours below the system's temporary one are opened for passage instead.
func reachable(dir string, as *account, log *slog.Logger) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil || as == nil {
		return dir, err
	}
	// Made here, so that what is missing becomes passable and what is there is judged.
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return "", err
	}
	temp := filepath.Clean(os.TempDir()) + string(filepath.Separator)
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err == nil && !as.passes(info) {
			if !strings.HasPrefix(parent, temp) {
				return inRootHome(dir, log)
			}
			if err := os.Chmod(parent, info.Mode().Perm()|0o111); err != nil {
				return "", err
			}
		}
		if parent == filepath.Dir(parent) {
			return dir, nil
		}
	}
}

func inRootHome(dir string, log *slog.Logger) (string, error) {
	sum := sha256.Sum256([]byte(dir))
	to := filepath.Join(rootHome, filepath.Base(dir)+"-"+hex.EncodeToString(sum[:6]))
	log.Info("Postgres' own user cannot reach the folder, so its files are elsewhere", "folder", dir, "files", to)
	return to, os.MkdirAll(rootHome, 0o755)
}

// passes tells whether the account may walk through the folder.
func (a *account) passes(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && st.Uid == a.uid:
		return mode&0o100 != 0
	case ok && st.Gid == a.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// command runs a program of Postgres as its account, deaf to our environment, and kills it when ctx ends.
func (p place) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.root
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if p.as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.as.uid, Gid: p.as.gid}
	}
	return cmd
}

// secret reads the file's random password and makes it on first use.
func (p place) secret(name string) (string, error) {
	b, err := os.ReadFile(p.join(name))
	if err == nil && len(b) > 0 {
		return string(b), nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		b = []byte(rand.Text())
		err = p.write(name, b)
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, "local.Start", "The password file "+p.join(name)+" cannot be used.", err)
	}
	return string(b), nil
}

// write replaces a small file whole, readable by Postgres' account only.
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

// processLock is the name of a lock that every process of a server inherits: it is free when none of them is left, which
// the number in a file cannot say. Nothing but Start and what it starts takes it.
const processLock = "processes"

// lock takes one of the folder's locks. It waits for it only when asked, until ctx ends.
func (p place) lock(ctx context.Context, name string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(p.join(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "local.Start", "The lock file "+p.join(name)+" cannot be opened.", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !wait || clock.Sleep(ctx, poll) != nil {
			_ = f.Close() // nothing was written
			return nil, fault.Wrap(fault.Conflict, "local.Start", "Another run is using the Postgres data in "+p.root+": stop it, or use another folder.", err)
		}
	}
}

// end stops what runs in the folder by a fast shutdown and, when ctx ends, by an immediate one. It returns the lock of
// the processes, of which none is left. It never kills outright: that would leave backends behind.
func (p place) end(ctx context.Context) (*os.File, error) {
	lock, err := p.signal(ctx, syscall.SIGINT)
	if err == nil || ctx.Err() == nil {
		return lock, err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateWait)
	defer cancel()
	if lock, err = p.signal(after, syscall.SIGQUIT); err != nil {
		return nil, fault.Wrap(fault.Unavailable, "local.Stop", "Postgres in "+p.root+" is still stopping.", err)
	}
	return lock, nil
}

// signal sends the postmaster a signal until it and all its children have ended, and takes their lock.
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

// pidFile returns the process id and the port that a postmaster wrote; zeroes when there is none.
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
