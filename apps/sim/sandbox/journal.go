package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"crier/platform/fault"
)

// span is a line's position in the journal.
type span struct {
	at  int64
	len int
}

// journal is an append-only file with one JSON object per line. append returns once its line is on
// disk. Calls to append must not be concurrent.
type journal struct {
	file   *os.File
	size   int64
	broken error // returned by every append; set by close and if the file's content is unknown
}

var errClosed = errors.New("the sandbox is closed")

// openJournal opens and locks the file, calls apply for each line, and removes an incomplete last
// line.
func openJournal(path string, log *slog.Logger, apply func(record, span) error) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "sandbox.openJournal", "The sandbox cannot open its file "+path+".", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockFault(path, err), file.Close())
	}
	j := &journal{file: file}
	if err := j.replay(log, apply); err != nil {
		err = fault.Wrap(fault.Internal, "sandbox.openJournal", "The sandbox cannot read its file "+path+".", err)
		return nil, errors.Join(err, file.Close())
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		err = fault.Wrap(fault.Internal, "sandbox.openJournal",
			"The sandbox cannot make the folder of "+path+" durable.", err)
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// lockFault returns the fault for a failure to lock the file. If another process holds the lock,
// the fault has no cause, because its message is a sufficient explanation.
func lockFault(path string, err error) error {
	const op = "sandbox.openJournal"
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fault.New(fault.Conflict, op, "Another process is using "+path+".")
	}
	return fault.Wrap(fault.Internal, op, "The sandbox cannot lock its file "+path+".", err)
}

// replay applies each line. At a line that cannot be parsed or applied, it stops and returns an
// error that contains the line number.
func (j *journal) replay(log *slog.Logger, apply func(record, span) error) error {
	r := bufio.NewReaderSize(j.file, 1<<16)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return j.removeTornLine(log, n, len(line))
		}
		if err != nil {
			return err
		}
		rec, err := parseRecord(line)
		if err != nil {
			return fmt.Errorf("line %d is broken: %w", n, err)
		}
		if err := apply(rec, span{at: j.size, len: len(line)}); err != nil {
			return fmt.Errorf("line %d is broken: %w", n, err)
		}
		j.size += int64(len(line))
	}
}

// removeTornLine removes an incomplete last line, whose length in bytes is torn. The process was
// killed before the fsync, so the record was never acknowledged.
func (j *journal) removeTornLine(log *slog.Logger, line, torn int) error {
	if torn > 0 {
		log.Warn("sandbox: removing a torn last line", "line", line, "bytes", torn)
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
	}
	return j.file.Sync()
}

func parseRecord(line []byte) (record, error) {
	var rec record
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rec); err != nil {
		return rec, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return rec, errors.New("more than one value on the line")
	}
	return rec, nil
}

// append writes a record and returns once it is on disk. If an error leaves the file's content
// unknown, all later calls return that error.
func (j *journal) append(rec record) (span, error) {
	if j.broken != nil {
		return span{}, j.broken
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return span{}, err
	}
	line = append(line, '\n')
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		if undo := errors.Join(j.file.Truncate(j.size), j.file.Sync()); undo != nil {
			j.broken = errors.Join(err, undo)
		}
		return span{}, err
	}
	if err := j.file.Sync(); err != nil {
		j.broken = fmt.Errorf("the contents of the disk are unknown after a failed sync: %w", err)
		return span{}, j.broken
	}
	s := span{at: j.size, len: len(line)}
	j.size += int64(len(line))
	return s, nil
}

// read returns the record at a position. It is safe to call concurrently with append.
func (j *journal) read(s span) (record, error) {
	line := make([]byte, s.len)
	if _, err := j.file.ReadAt(line, s.at); err != nil {
		return record{}, err
	}
	return parseRecord(line)
}

// close unlocks and closes the file. Closing alone would not release the lock while a child process
// is being started, because the child holds a copy of the descriptor until it calls exec.
func (j *journal) close() error {
	j.broken = errClosed
	return errors.Join(syscall.Flock(int(j.file.Fd()), syscall.LOCK_UN), j.file.Close())
}

// syncDir syncs a folder, so that new names in it survive a crash.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
