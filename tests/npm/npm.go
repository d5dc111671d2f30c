// Package npm runs Node.js scripts with packages from npm, for tests.
package npm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Run copies files into a folder, installs the packages and runs the script. The files are
// package.json, package-lock.json and the script. It needs npm and its registry.
//
// The script reads input as JSON and writes JSON, which Run decodes into output. The installation
// and the script may take limit each. Run ends the test if anything fails.
func Run(t testing.TB, files fs.FS, script string, limit time.Duration, input, output any) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	run(t, dir, limit, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(run(t, dir, limit, raw, "node", script), output); err != nil {
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
