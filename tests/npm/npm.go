// Package npm runs Node.js scripts with packages from npm, for tests.
package npm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Run installs packages and runs a script: see Install and Folder.Run.
func Run(t testing.TB, files fs.FS, script string, limit time.Duration, input, output any) {
	t.Helper()
	Install(t, files, limit).Run(t, script, limit, input, output)
}

// Folder is a folder with scripts and their packages.
type Folder struct {
	// Dir is the folder's path.
	Dir string
	// Node is the path of the Node.js that runs scripts; "" is the one of this machine.
	Node string
}

// Install copies files into a folder and installs the packages. The files are package.json,
// package-lock.json and the scripts. It needs npm and its registry. The installation may take
// limit.
func Install(t testing.TB, files fs.FS, limit time.Duration) Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	run(t, dir, limit, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	return Folder{Dir: dir}
}

// Run runs a script, which may take limit. The script reads input as JSON and writes JSON, which
// Run decodes into output. Run ends the test if anything fails.
func (f Folder) Run(t testing.TB, script string, limit time.Duration, input, output any) {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, f.Dir, limit, raw, cmp.Or(f.Node, "node"), script)
	if err := json.Unmarshal(out, output); err != nil {
		t.Fatalf("%s has written no JSON of %T: %v", script, output, err)
	}
}

func run(t testing.TB, dir string, limit time.Duration, input []byte, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = dir, bytes.NewReader(input), 5*time.Second
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%s %s: %w\n%s%s", name, args[0], err, out, wrong.Bytes()))
	}
	return out
}
