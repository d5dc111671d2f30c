//go:build !linux

package local

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent has no counterpart here: the next start stops what a killed run left.
func dieWithParent(*syscall.SysProcAttr) {}

// isPostmaster tells whether the process is a living Postgres of this data folder.
func isPostmaster(pid int, data string) bool {
	if pid <= 0 {
		return false
	}
	out, err := exec.Command("/bin/ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres") && strings.Contains(string(out), data)
}
