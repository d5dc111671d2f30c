package main

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// echo answers every byte with itself.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // the test is over
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }() // the caller sees what is missing
		}
	}()
	return ln.Addr().String()
}

func say(t *testing.T, c net.Conn, word string, patience time.Duration) (string, error) {
	t.Helper()
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, len(word))
	_, err := io.ReadFull(c, back)
	return string(back), err
}

func TestAGateKeepsBackAndRefuses(t *testing.T) {
	t.Parallel()
	g, err := newGate(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := say(t, c, "one", 10*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	g.silence(true)
	if got, err := say(t, c, "two", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a silent gate answers", got, err)
	}
	fresh, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal("a silent gate refuses", err)
	}
	if got, err := say(t, fresh, "new", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a silent gate answers a newcomer", got, err)
	}
	g.silence(false)
	back := make([]byte, 3)
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, back); err != nil || string(back) != "two" {
		t.Fatal("what was kept back is lost", string(back), err)
	}
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := say(t, c, "x", 10*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a closed gate keeps its connections", err)
	}
	if _, err := net.Dial("tcp", g.address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal("a closed gate does not refuse", err)
	}
	if err := g.open(echo(t)); err != nil {
		t.Fatal(err)
	}
	again, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := say(t, again, "here", 10*time.Second); got != "here" {
		t.Fatal("a gate that is open again does not answer", got, err)
	}
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
}

func TestGateSwallow_CallerSeesNeitherAnswerNorEnd(t *testing.T) {
	t.Parallel()
	g, err := newGate(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the test is over
		return c
	}
	answers := func(c net.Conn, want bool) {
		t.Helper()
		patience := 10 * time.Second
		if !want {
			patience = 100 * time.Millisecond
		}
		got, err := say(t, c, "word", patience)
		if want && got != "word" || !want && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %q and %v, want an answer: %v", got, err, want)
		}
	}
	old := dial()
	answers(old, true)
	if n := g.swallow(false); n != 1 {
		t.Fatalf("swallow found %d connections, want 1", n)
	}
	answers(old, false)
	fresh := dial()
	answers(fresh, true)
	g.swallow(true)
	late := dial()
	answers(late, false)
	answers(fresh, false)
	g.hear()
	answers(dial(), true)
	answers(late, false)
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
}
