package cluster

import (
	"syscall"
	"testing"
)

func TestHomeClose_UnlocksDespiteDescriptorOfStartingProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	// As in a child process between fork and exec.
	starting, err := syscall.Dup(int(first.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(starting)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
