//go:build race

package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"crier/platform/env"
)

// suppressions is a file of the package under test with races of libraries that the race detector is to ignore, one
// "race:function" a line. It says above each why it is harmless.
const suppressions = "testdata/race.txt"

// suppressRaces executes the program again with the suppressions of its package, if it has any. The race detector reads
// them only when a program starts.
func suppressRaces() error {
	const option = "suppressions="
	options, _ := env.OS()("GORACE")
	if _, err := os.Stat(suppressions); os.IsNotExist(err) || strings.Contains(options, option) {
		return nil
	}
	file, err := filepath.Abs(suppressions)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv("GORACE", strings.TrimSpace(options+" "+option+file)); err != nil {
		return err
	}
	return fmt.Errorf("start again: %w", syscall.Exec(program, os.Args, os.Environ()))
}
