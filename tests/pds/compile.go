package pds

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"
)

// define matches one quoted macro in the module's build file. The other quoted words there are
// lower case.
var define = regexp.MustCompile(`'([A-Z][A-Z0-9_]*(?:=[^']*)?)'`)

// compile builds the database module in place against the headers of the installed Node.js. The
// module's own build would use the headers that the machine's npm settings point to.
//
// SQLite is compiled without optimization, because optimizing takes two thirds of the time and the
// tests' tables are tiny.
func compile(ctx context.Context, dir string) error {
	module := filepath.Join(dir, "node_modules", "better-sqlite3")
	headers := filepath.Join(nodeHome(dir), "include", "node")
	out := filepath.Join(module, "build", "Release")
	patched := filepath.Join(module, "build", "include")
	if err := errors.Join(os.MkdirAll(out, 0o755), os.MkdirAll(patched, 0o755)); err != nil {
		return err
	}
	const header = "node_object_wrap.h"
	if err := patch(filepath.Join(headers, header), filepath.Join(patched, header)); err != nil {
		return err
	}
	defines, err := sqliteDefines(filepath.Join(module, "deps", "defines.gypi"))
	if err != nil {
		return err
	}
	sqlite := filepath.Join(module, "deps", "sqlite3")
	g, both := errgroup.WithContext(ctx)
	g.Go(func() error {
		args := []string{"-c", filepath.Join(sqlite, "sqlite3.c"), "-o", "sqlite3.o", "-O0", "-fPIC", "-w", "-DNDEBUG"}
		return run(both, out, "gcc", append(args, defines...)...)
	})
	g.Go(func() error {
		return run(both, out, "g++", "-c", filepath.Join(module, "src", "better_sqlite3.cpp"), "-o", "module.o",
			"-O1", "-fPIC", "-w", "-std=c++20", "-fno-rtti", "-fno-exceptions", "-fno-strict-aliasing",
			"-DNDEBUG", "-DBUILDING_NODE_EXTENSION", "-DNODE_GYP_MODULE_NAME=better_sqlite3", "-D_FILE_OFFSET_BITS=64",
			"-I"+patched, "-I"+headers, "-I"+sqlite)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return run(ctx, out, "g++", "-shared", "-o", "better_sqlite3.node", "sqlite3.o", "module.o",
		"-Wl,-Bsymbolic", "-Wl,--exclude-libs,ALL")
}

// patch copies a header of Node.js without the two calls that register an object for cleanup. They
// look up the current environment, which does not exist if the garbage collector runs between
// tasks, and abort the process.
func patch(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	before := string(text)
	after := before
	for _, call := range []string{"    AddCleanupHook();\n", "    RemoveCleanupHook();\n"} {
		if strings.Count(before, call) != 1 {
			return errors.New("the header of Node.js has changed: " + from + " does not have this call exactly once: " +
				strings.TrimSpace(call))
		}
		after = strings.Replace(after, call, "", 1)
	}
	return os.WriteFile(to, []byte(after), 0o644)
}

func sqliteDefines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	flags := []string{}
	for _, m := range define.FindAllStringSubmatch(string(text), -1) {
		flags = append(flags, "-D"+m[1])
	}
	if len(flags) == 0 {
		return nil, errors.New("no macros in " + path)
	}
	return flags, nil
}
