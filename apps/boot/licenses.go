package boot

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
)

// licenses holds NOTICE if the binary was built by ops/release.
//
//go:embed licenses
var licenses embed.FS

type licensesCommand struct{}

func (licensesCommand) Run(t *terminal) error {
	notice, err := licenses.ReadFile("licenses/NOTICE")
	if errors.Is(err, fs.ErrNotExist) {
		t.printModules()
		return nil
	}
	if err != nil {
		return err
	}
	_, err = t.out.Write(notice)
	return err
}

// printModules prints the modules of a binary without NOTICE, and how to get their licenses.
func (t *terminal) printModules() {
	fmt.Fprintln(t.out, "Crier is licensed under the Apache License 2.0.\n\n"+
		"This binary was built without the texts of the other licenses. In the source code of this version,\n"+
		"ops/notice prints them, and ops/release builds a binary that contains them.\n\n"+
		"It contains the Go standard library and these modules:")
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(t.out, "unknown: the binary was built without module support")
		return
	}
	for _, m := range info.Deps {
		fmt.Fprintf(t.out, "%s %s\n", m.Path, m.Version)
	}
}
