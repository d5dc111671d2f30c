package faultnet

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// before returns a proxy in front of an echo server. ended receives a value for each connection
// whose end the server has seen.
func before(t *testing.T) (p *Proxy, ended chan struct{}) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // the test is over
	ended = make(chan struct{}, 10)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // the caller checks the echo
				_ = c.Close()
				ended <- struct{}{}
			}()
		}
	}()
	p, _ = Start(t, "tcp://"+ln.Addr().String())
	return p, ended
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test is over
	return c
}

// fate is the result of sending a word.
type fate string

const (
	echoed fate = "echoed"
	silent fate = "silent"
	broken fate = "broken"
)

// hears sends a word, unless it is empty, and checks the result.
func hears(t *testing.T, c net.Conn, word string, want fate) {
	t.Helper()
	patience := 10 * time.Second
	if want == silent {
		patience = 50 * time.Millisecond
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, bad := io.WriteString(c, word)
	back := make([]byte, 4)
	_, err := io.ReadFull(c, back)
	got := echoed
	err = errors.Join(bad, err)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		got = silent
	case err != nil:
		got = broken
	}
	if got != want {
		t.Fatalf("got %s (%q, %v), want %s", got, back, err, want)
	}
}

func TestProxy_ModeAppliesToOpenAndNewConnections(t *testing.T) {
	t.Parallel()
	for mode, want := range map[Mode]struct{ open, fresh, after fate }{
		Pass: {open: echoed, fresh: echoed, after: echoed}, Refuse: {open: broken, fresh: broken, after: broken},
		Swallow: {open: silent, fresh: silent, after: silent}, Abandon: {open: silent, fresh: silent, after: silent},
	} {
		p, ended := before(t)
		open := dial(t, p)
		hears(t, open, "word", echoed)
		if n := p.Set(mode); n != 0 && want.open != silent || n != 1 && want.open == silent {
			t.Errorf("mode %d: got %d silent connections", mode, n)
		}
		hears(t, open, "word", want.open)
		fresh := dial(t, p)
		hears(t, fresh, "word", want.fresh)
		if seen := len(ended) > 0; seen && mode == Swallow {
			t.Error("the server sees the end of a swallowed connection")
		}
		if mode == Refuse || mode == Abandon {
			<-ended
		}
		p.Set(Pass)
		hears(t, dial(t, p), "word", echoed)
		hears(t, open, "word", want.after)
		hears(t, fresh, "word", want.after)
		if n := p.Accepted(); n != 3 {
			t.Errorf("accepted %d connections, want 3", n)
		}
		if err := open.Close(); err != nil {
			t.Error(err)
		}
		if mode == Swallow {
			<-ended
		}
	}
}

func TestProxy_HoldKeepsData(t *testing.T) {
	t.Parallel()
	p, _ := before(t)
	open := dial(t, p)
	hears(t, open, "word", echoed)
	p.Set(Hold)
	hears(t, open, "kept", silent)
	fresh := dial(t, p)
	hears(t, fresh, "kept", silent)
	p.Set(Pass)
	hears(t, open, "", echoed)
	hears(t, fresh, "", echoed)
}

func TestProxy_RefusesWhileClosed(t *testing.T) {
	t.Parallel()
	p, _ := before(t)
	held, lost := dial(t, p), dial(t, p)
	hears(t, lost, "word", echoed)
	p.Set(Swallow)
	p.Set(Hold)
	hears(t, held, "kept", silent)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	hears(t, held, "word", broken)
	hears(t, lost, "word", broken)
	if _, err := net.Dial("tcp", p.Address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v from a closed proxy, want ECONNREFUSED", err)
	}
	if err := p.Open(); err != nil {
		t.Fatal(err)
	}
	fresh := dial(t, p)
	hears(t, fresh, "kept", silent) // Open keeps the mode
	p.Set(Pass)
	hears(t, fresh, "", echoed)
}
