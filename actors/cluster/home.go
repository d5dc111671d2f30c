package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"crier/platform/fault"
)

// Home is a process's data folder. A file lock ensures that only one process uses it at a time. A
// process that holds the lock therefore knows that all earlier processes with the same ID have
// ended.
type Home struct {
	// ID identifies the folder. It is stored in the file node.id and outlives the process.
	ID   uuid.UUID
	lock *os.File
}

// OpenHome locks the data folder dir and creates it if it does not exist. The operating system
// releases the lock when the process ends, even after a crash.
//
// OpenHome returns fault.Conflict if another process has locked the folder. It returns
// fault.Invalid if the folder cannot be created or written to, or if its node.id is not valid.
func OpenHome(dir string) (*Home, error) {
	const op = "cluster.OpenHome"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fault.Wrap(fault.Invalid, op, "The data folder "+dir+" cannot be created.", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, "The data folder "+dir+" cannot be written to.", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		message := "Another crier process is using the data folder " + dir + ": stop it, or set CRIER_HOME."
		return nil, errors.Join(fault.Wrap(fault.Conflict, op, message, err), lock.Close())
	}
	id, err := homeID(filepath.Join(dir, "node.id"))
	if err != nil {
		message := "The file node.id in the data folder " + dir + " is invalid: it must contain a UUID."
		return nil, errors.Join(fault.Wrap(fault.Invalid, op, message, err), lock.Close())
	}
	return &Home{ID: id, lock: lock}, nil
}

// homeID reads the id from the file, or writes a new one if the file is missing or empty.
func homeID(path string) (uuid.UUID, error) {
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return uuid.Nil, err
	}
	if len(raw) == 0 {
		id := uuid.New()
		return id, os.WriteFile(path, []byte(id.String()+"\n"), 0o644)
	}
	return uuid.Parse(strings.TrimSpace(string(raw)))
}

// Close releases the lock. It unlocks the file explicitly, because a child process between fork and
// exec has a copy of the file descriptor, which would otherwise keep the lock. Close returns errors
// from the operating system. Even after an error, the lock is released when the process ends.
func (h *Home) Close() error {
	return errors.Join(syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN), h.lock.Close())
}
