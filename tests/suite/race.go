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

// suppressions is a file of the package under test. It lists races in libraries that the race
// detector must ignore, one "race:function" per line, each below a comment that says why it is
// harmless.
const suppressions = "testdata/race.txt"

// suppressRaces executes the program again with its package's suppressions, if it has any. The race
// detector reads them only when a program starts.
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
