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

// printModules is used if the binary was built without NOTICE. It lists the binary's modules and
// explains how to get their licenses.
func (t *terminal) printModules() {
	fmt.Fprintln(t.out, "Crier is licensed under the Apache License 2.0.\n\n"+
		"This binary was built without the texts of the other licenses, so do not pass it on. In the source code\n"+
		"of this version, ops/notice prints the texts, and ops/release builds a binary that contains them.\n\n"+
		"The binary contains the Go standard library, the library of the API console, a list of common passwords,\n"+
		"and the modules below. `go mod download MODULE@VERSION` fetches the source code of a module.")
	fmt.Fprintln(t.out)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(t.out, "unknown: the binary was built without module support")
		return
	}
	for _, m := range info.Deps {
		fmt.Fprintf(t.out, "%s %s\n", m.Path, m.Version)
	}
}
