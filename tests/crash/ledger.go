package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

// What a line of the ledger speaks of.
const (
	doCreate     = "create"
	doEdit       = "edit" // another text, another time, or both
	doDraft      = "draft"
	doSchedule   = "schedule"
	doDelete     = "delete"
	doGroup      = "deleteGroup"
	doPause      = "pause"  // of a channel or an organization
	doResume     = "resume" // of the same
	doLeave      = "disconnect"
	doRead       = "read"
	doStored     = "stored" // what the database holds at the end; the engine must not have written the time of a post
	doFault      = "fault"
	doFaultsOver = "faultsOver"
	doPoll       = "poll"    // the state of a post while its platform is silent
	doStale      = "stale"   // a post that was written with a time past MAX_LATE
	doHit        = "hit"     // a fault has met what it is aimed at
	doWatched    = "watched" // single posts that nothing was aimed at while a fault lasted
	doStuck      = "stuck"   // a post did not end in the time that a fault leaves it
	doExit       = "exit"    // of a process that nobody ended
)

// line is one request, one answer or one fault. A request's line is on disk before the request is sent.
type line struct {
	At       time.Time `json:"at"`
	Do       string    `json:"do"`
	Ask      bool      `json:"ask,omitempty"` // the request; else its answer
	Post     int       `json:"post,omitempty"`
	Key      string    `json:"key,omitempty"`
	Account  string    `json:"account,omitempty"`  // on the platform
	Accounts []string  `json:"accounts,omitempty"` // that a pause, a resume or a disconnect reaches
	InFlight int       `json:"inFlight,omitempty"` // as the answer to a pause says
	Grade    string    `json:"grade,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	Text     string    `json:"text,omitempty"`
	Status   int       `json:"status,omitempty"` // of HTTP; 0 = no answer came
	ID       string    `json:"id,omitempty"`     // of the post
	State    string    `json:"state,omitempty"`
	Code     string    `json:"code,omitempty"` // of an error
	Note     string    `json:"note,omitempty"`
	Doubt    bool      `json:"doubt,omitempty"`  // the database says that the post may be on the platform
	Fault    string    `json:"fault,omitempty"`  // kind of the fault that a post was booked for
	Posts    []int     `json:"posts,omitempty"`  // that were watched
	Millis   int64     `json:"millis,omitempty"` // for how long the machine itself stood still while they were
}

// ledger is the append-only file; write returns when its lines are on disk.
type ledger struct {
	mu      sync.Mutex
	turn    *sync.Cond
	file    *os.File
	pending []byte
	written int // writes handed in
	synced  int // writes on disk
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

// sync writes what has gathered, and tells the waiting that it is on disk.
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

// readLines reads a file of one JSON value a line.
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
