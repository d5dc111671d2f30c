package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

// What a line of the ledger records.
const (
	doCreate     = "create"
	doEdit       = "edit" // another text, another due time, or both
	doDraft      = "draft"
	doSchedule   = "schedule"
	doDelete     = "delete"
	doGroup      = "deleteGroup"
	doPause      = "pause" // a channel or an organization
	doResume     = "resume"
	doDisconnect = "disconnect"
	doRead       = "read"
	// The post's row in the database at the end of the run.
	doStored     = "stored"
	doFault      = "fault"
	doFaultsOver = "faultsOver"
	doPoll       = "poll"  // the state of a post during a silence
	doStale      = "stale" // a post written directly with a due time past MAX_LATENESS
	doHit        = "hit"   // a drill took effect on its target
	// The probe posts of a drill.
	doProbes = "watched"
	doStuck  = "stuck" // a post did not end in the time that its drill allows
	doExit   = "exit"  // a process ended on its own
)

// line is one request, one response or one fault. The line of a request is on disk before the
// request is sent.
type line struct {
	At time.Time `json:"at"`
	Do string    `json:"do"`
	// Ask marks a request. Otherwise the line is the response to one.
	Ask  bool   `json:"ask,omitempty"`
	Post int    `json:"post,omitempty"`
	Key  string `json:"key,omitempty"`
	// Account is the name of the account on the platform.
	Account string `json:"account,omitempty"`
	// Accounts are the accounts that a pause, a resume or a disconnect affects.
	Accounts []string `json:"accounts,omitempty"`
	// InFlight is the count in the response to a pause.
	InFlight int       `json:"inFlight,omitempty"`
	Grade    string    `json:"grade,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	Text     string    `json:"text,omitempty"`
	// Status is the HTTP status, or 0 if no response arrived.
	Status int `json:"status,omitempty"`
	// ID is the id of the post.
	ID    string `json:"id,omitempty"`
	State string `json:"state,omitempty"`
	// Code is an error code, a kind of fault or an exit status.
	Code string `json:"code,omitempty"`
	Note string `json:"note,omitempty"`
	// MaybeSent means that the database records the post as possibly on the platform.
	MaybeSent bool `json:"maybeSent,omitempty"`
	// Fault is the kind of the drill that the post belongs to.
	Fault string `json:"fault,omitempty"`
	// Posts are the probe posts that were watched.
	Posts []int `json:"posts,omitempty"`
	// Millis is how long the machine itself stalled while the posts were watched.
	Millis int64 `json:"millis,omitempty"`
}

// ledger is an append-only file. A line is on disk when write returns.
type ledger struct {
	mu      sync.Mutex
	turn    *sync.Cond
	file    *os.File
	pending []byte
	written int // number of accepted writes
	synced  int // number of writes on disk
	broken  error
	closed  bool
	done    chan struct{}
}

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &ledger{file: file, done: make(chan struct{})}
	l.turn = sync.NewCond(&l.mu)
	go l.sync()
	return l, nil
}

// sync writes pending lines in batches and wakes the writers whose lines are on disk. It returns
// after close.
func (l *ledger) sync() {
	defer close(l.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.pending) == 0 && !l.closed {
			l.turn.Wait()
		}
		if len(l.pending) == 0 {
			return
		}
		batch, upTo := l.pending, l.written
		l.pending = nil
		l.mu.Unlock()
		_, err := l.file.Write(batch)
		err = errors.Join(err, l.file.Sync())
		l.mu.Lock()
		l.synced, l.broken = upTo, errors.Join(l.broken, err)
		l.turn.Broadcast()
	}
}

func (l *ledger) write(all ...line) error {
	var raw []byte
	for _, v := range all {
		v.At = time.Now()
		one, err := json.Marshal(v)
		if err != nil {
			return err
		}
		raw = append(append(raw, one...), '\n')
	}
	if len(raw) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return os.ErrClosed
	}
	l.pending = append(l.pending, raw...)
	l.written++
	mine := l.written
	l.turn.Broadcast()
	for l.synced < mine && l.broken == nil {
		l.turn.Wait()
	}
	return l.broken
}

func (l *ledger) close() error {
	l.mu.Lock()
	l.closed = true
	l.turn.Broadcast()
	l.mu.Unlock()
	<-l.done
	return errors.Join(l.broken, l.file.Close())
}

// readLines reads a file that has one JSON value per line.
func readLines[T any](path string) (out []T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var v T
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, in.Err()
}
