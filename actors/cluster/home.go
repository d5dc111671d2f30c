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

// Home is a data folder, held by one process at a time: the holder knows that the processes before it have ended.
type Home struct {
	ID   uuid.UUID
	lock *os.File
}

// OpenHome makes the folder if need be and takes its lock. Conflict when another process holds it.
func OpenHome(dir string) (*Home, error) {
	const op = "cluster.OpenHome"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fault.Wrap(fault.Invalid, op, "The data folder "+dir+" cannot be made.", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, "The data folder "+dir+" cannot be written to.", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Conflict, op, "Another crier runs on the data folder "+dir+": stop it, or set CRIER_HOME.", err), lock.Close())
	}
	id, err := homeID(filepath.Join(dir, "node.id"))
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.Invalid, op, "The file node.id in the data folder "+dir+" is broken: it must hold a UUID.", err), lock.Close())
	}
	return &Home{ID: id, lock: lock}, nil
}

func homeID(path string) (uuid.UUID, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(raw) == 0 {
		id := uuid.New()
		return id, os.WriteFile(path, []byte(id.String()+"\n"), 0o644)
	}
	if err != nil {
		return uuid.Nil, err
	}
	return uuid.Parse(strings.TrimSpace(string(raw)))
}

// Close lets the folder go, also while a process that is being started holds a copy of the lock's file until its exec.
func (h *Home) Close() error {
	return errors.Join(syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN), h.lock.Close())
}
