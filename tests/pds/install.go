package pds

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// recipe holds all files that determine the content of an install. Their hash is in the name of its
// folder.
//
//go:embed package.json package-lock.json install.go compile.go probe.cjs
var recipe embed.FS

// lockPoll is the interval at which a second installer checks whether the first has finished.
const lockPoll = 200 * time.Millisecond

// Install makes sure that this machine has the PDS, its Node.js and a database module compiled for
// that Node.js, and returns their folder. It needs npm, gcc and g++. It returns the error of a
// program that is missing or fails.
//
// The folder is below CRIER_CACHE or, without it, below the user's cache. It is either complete or
// absent, even if an install was killed or several processes install at the same time. The first
// install takes about a minute on two cores and writes its progress to log.
func Install(ctx context.Context, log io.Writer) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	version, err := hash()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "pds-"+version)
	return dir, settle(ctx, dir, func(tmp string) error { return build(ctx, log, tmp) })
}

func cacheDir() (string, error) {
	if dir := os.Getenv("CRIER_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "crier"), err
}

func hash() (string, error) {
	sum := sha256.New()
	entries, err := recipe.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		text, err := recipe.ReadFile(e.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// settle creates dir unless it exists. fill fills a temporary folder, which is then renamed. Only
// one process at a time does this.
func settle(ctx context.Context, dir string, fill func(tmp string) error) error {
	if exists(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if exists(dir) {
		return nil
	}
	sweep(dir)
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-")
	if err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return os.Rename(tmp, dir)
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// sweep removes what killed installs of the same version left behind. A folder to which a child of
// a killed install still writes cannot be removed. It does no harm, and the next sweep removes it.
func sweep(dir string) {
	left, err := filepath.Glob(dir + ".tmp-*")
	if err != nil {
		return
	}
	for _, tmp := range left {
		os.RemoveAll(tmp)
	}
}

// lock takes a file lock. The kernel releases it if its holder dies.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, ctx.Err()), f.Close())
		case <-tick.C:
		}
	}
}

// build fills dir: it installs the packages in the lockfile without their install scripts, compiles
// the database module and runs a probe.
func build(ctx context.Context, log io.Writer, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := recipe.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintln(log, "pds: installing the packages")
	err := run(ctx, dir, "npm", "ci",
		"--ignore-scripts", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error")
	if err != nil {
		return err
	}
	if !exists(node(dir)) {
		return fmt.Errorf("no Node.js package for this machine: %s is missing", node(dir))
	}
	fmt.Fprintln(log, "pds: compiling the database module")
	if err := compile(ctx, dir); err != nil {
		return err
	}
	probe, err := recipe.ReadFile("probe.cjs")
	if err != nil {
		return err
	}
	return run(ctx, dir, node(dir), "--eval", string(probe))
}

// run runs a command in dir. The error contains the command's output.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
