package contract

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"crier/tests/pds"
)

// sampleTime limits the run of all samples in one language, including the compiler.
const sampleTime = 3 * time.Minute

// sample is code on a page of the documentation.
type sample struct{ language, operation, code string }

// samples returns the code on a page, in order.
func (r *rig) samples(t *testing.T, page string) (out []sample) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(org{rig: r}.get(t, page).want(t, 200).Body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		var s sample
		for _, at := range n.Attr {
			switch at.Key {
			case "data-language":
				s.language = at.Val
			case "data-operation":
				s.operation = at.Val
			}
		}
		if s.language == "" {
			continue
		}
		for child := range n.Descendants() {
			if child.Type == html.TextNode {
				s.code += child.Data
			}
		}
		out = append(out, s)
	}
	return out
}

// runner runs all samples in a language in one process. The process prints "== <operation>" before
// the output of each sample.
type runner struct {
	// extension is the file name extension of the samples.
	extension string
	// prepare changes a sample so that it can run together with the others.
	prepare func(code string, n int) string
	// main returns the name and the text of the file that runs the samples.
	main func(samples []sample) (name, text string)
	// command returns the program and its arguments. It skips the test if this machine does not
	// have the program.
	command func(t *testing.T, main string) []string
}

func fileOf(n int, extension string) string { return fmt.Sprintf("sample%d.%s", n, extension) }

var runners = map[string]runner{
	"curl": {
		extension: "sh",
		main: func(samples []sample) (string, string) {
			return "run.sh", list(samples, "echo '== %s'\n. ./%s\necho\n", "sh")
		},
		command: func(t *testing.T, main string) []string { return []string{program(t, "bash"), main} },
	},
	"typescript": {
		extension: "ts",
		main: func(samples []sample) (string, string) {
			return "run.mjs", list(samples, "console.log('== %s');\nawait import('./%s').catch(console.error);\n", "ts")
		},
		command: func(t *testing.T, main string) []string { return []string{node(t), main} },
	},
	"python": {
		extension: "py",
		main: func(samples []sample) (string, string) {
			const one = "print('== %s')\ntry:\n    exec(open('%s').read(), {})\nexcept BaseException as e:\n    print(e)\n"
			return "run.py", list(samples, one, "py")
		},
		command: func(t *testing.T, main string) []string { return []string{program(t, "python3"), main} },
	},
	"go": {
		extension: "go",
		prepare: func(code string, n int) string {
			return strings.Replace(code, "func main() {", fmt.Sprintf("func sample%d() {", n), 1)
		},
		main: func(samples []sample) (string, string) {
			var b strings.Builder
			for i, s := range samples {
				fmt.Fprintf(&b, "\tfmt.Println(\"== %s\")\n\tsample%d()\n", s.operation, i)
			}
			return "run.go", "package main\n\nimport \"fmt\"\n\nfunc main() {\n" + b.String() + "}\n"
		},
		command: func(t *testing.T, _ string) []string { return []string{program(t, "go"), "run", "."} },
	},
	"php": {
		extension: "php",
		main: func(samples []sample) (string, string) {
			const one = "echo \"== %s\\n\";\ntry { include '%s'; } catch (Throwable $e) { echo $e; }\n"
			return "run.php", "<?php\n" + list(samples, one, "php")
		},
		command: func(t *testing.T, main string) []string { return []string{program(t, "php"), main} },
	},
}

// list returns a line for each sample: format with the sample's operation and file.
func list(samples []sample, format, extension string) string {
	var b strings.Builder
	for i, s := range samples {
		fmt.Fprintf(&b, format, s.operation, fileOf(i, extension))
	}
	return b.String()
}

// program returns the path of a program. It skips the test if this machine does not have the
// program.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("this machine has no %s: the samples in its language are not run", name)
	}
	return path
}

// node returns a Node.js that runs TypeScript.
func node(t *testing.T) string {
	t.Helper()
	path, err := pds.Node(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs samples and returns their output, keyed by operation.
func (r runner) run(t *testing.T, samples []sample, environment ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	files := project()
	files["picture.png"] = string(png(t))
	for i, s := range samples {
		code := s.code
		if r.prepare != nil {
			code = r.prepare(code, i)
		}
		files[fileOf(i, r.extension)] = code
	}
	main, text := r.main(samples)
	files[main] = text
	write(t, dir, files)
	output := execute(t, dir, []byte{}, environment, r.command(t, main)...)
	got := map[string]string{}
	for _, part := range strings.Split(output, "== ")[1:] {
		operation, written, _ := strings.Cut(part, "\n")
		got[operation] = strings.TrimSpace(written)
	}
	return got
}

// project returns the files that samples need beside them, for all languages.
func project() map[string]string {
	return map[string]string{"go.mod": "module samples\n\ngo 1.26\n", "package.json": `{"type": "module"}`}
}

// alone runs one sample as a complete program and returns its output. The error is nil if it exits
// with the status 0.
func (r runner) alone(t *testing.T, s sample, environment ...string) (string, error) {
	t.Helper()
	dir, files := t.TempDir(), project()
	files[fileOf(0, r.extension)] = s.code
	write(t, dir, files)
	ctx, cancel := context.WithTimeout(t.Context(), sampleTime)
	defer cancel()
	command := r.command(t, fileOf(0, r.extension))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	cmd.Env = append(os.Environ(), environment...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// execute runs a command in dir and returns its standard output. It only logs the standard error
// and a status other than 0: callers find failures by the output.
func execute(t *testing.T, dir string, input []byte, environment []string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sampleTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = dir, bytes.NewReader(input), 5*time.Second
	cmd.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Logf("%s: %v\n%s", filepath.Base(command[0]), err, stderr.Bytes())
	}
	return string(output)
}
