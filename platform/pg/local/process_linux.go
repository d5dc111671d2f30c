package local

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// dieWithParent makes the kernel ask the child for a fast shutdown when we are gone, even by kill -9.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

// isPostmaster tells whether the process is a living Postgres of this data folder. A zombie has no command line, so it is not.
func isPostmaster(pid int, data string) bool {
	if pid <= 0 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false
	}
	args := bytes.Split(b, []byte{0})
	return bytes.Contains(args[0], []byte("postgres")) && slices.ContainsFunc(args, func(a []byte) bool { return string(a) == data })
}
