// Package smtptest runs a mail server on loopback for tests. It offers STARTTLS, fails on request,
// and keeps the messages that it got.
package smtptest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// Step is a step in an SMTP session at which a server can go silent.
type Step string

// The steps, in order.
const (
	StepConnect  Step = "connect"  // no greeting
	StepGreet    Step = "greet"    // no response to EHLO
	StepStartTLS Step = "starttls" // no response to the TLS handshake
	StepAuth     Step = "auth"     // no response to AUTH
	StepMail     Step = "mail"     // no response to MAIL
	StepRcpt     Step = "rcpt"     // no response to RCPT
	StepData     Step = "data"     // a response to DATA but not to the end of the message
	StepQuit     Step = "quit"     // the message is accepted, but there is no response to QUIT
)

// Option changes a Server.
type Option func(*Server)

// Plain turns off STARTTLS. URL then has tls=none.
func Plain() Option { return func(s *Server) { s.mode = plain } }

// Implicit makes the server use TLS from the first byte. URL then starts with smtps://.
func Implicit() Option { return func(s *Server) { s.mode = implicit } }

// SilentAfter makes the server stop responding at a step, in every connection. The connections stay
// open.
func SilentAfter(step Step) Option { return func(s *Server) { s.silentAt = step } }

// Hold makes the server not respond to RCPT for addresses that end with suffix, until Release is
// called.
func Hold(suffix string) Option { return func(s *Server) { s.hold = suffix } }

// Refuse makes the server respond to RCPT for an address with a code, such as 550 or 451.
func Refuse(address string, code int) Option { return func(s *Server) { s.refused[address] = code } }

// RefuseSender makes the server respond to every MAIL with a code.
func RefuseSender(code int) Option { return func(s *Server) { s.refusedSender = code } }

// RefuseMessage makes the server respond to the end of every message with a code.
func RefuseMessage(code int) Option { return func(s *Server) { s.refusedMessage = code } }

// Login makes the server offer AUTH PLAIN and accept messages only after it. URL then contains the
// user and the password.
func Login(user, password string) Option {
	return func(s *Server) { s.user, s.password = user, password }
}

// mode says how a server encrypts.
type mode int

const (
	startTLS mode = iota
	implicit
	plain
)

// Server is a running mail server. It is safe for concurrent use.
type Server struct {
	mode           mode
	silentAt       Step
	hold           string // "" for none
	refused        map[string]int
	refusedSender  int
	refusedMessage int
	user, password string

	address string
	server  *tls.Config
	client  *tls.Config
	closing chan struct{}  // closed at the end of the test; ends every silence
	open    sync.WaitGroup // one goroutine per connection

	mu       sync.Mutex
	received []Received    // oldest first
	changed  chan struct{} // closed and replaced when received grows

	silent chan struct{} // closed by reach
	reach  sync.Once

	held     chan string   // the addresses that Hold makes wait, as they arrive
	released chan struct{} // closed by Release
}

// Held returns a channel of the addresses whose RCPT waits because of Hold.
func (s *Server) Held() <-chan string { return s.held }

// Release ends the wait that Hold causes. It must be called at most once.
func (s *Server) Release() { close(s.released) }

// Start runs a server on a free port of 127.0.0.1 until the test ends, with a new certificate.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{
		refused: map[string]int{}, closing: make(chan struct{}),
		changed: make(chan struct{}), silent: make(chan struct{}),
		held: make(chan string, 100), released: make(chan struct{}),
	}
	for _, opt := range opts {
		opt(s)
	}
	var err error
	if s.server, s.client, err = certificates(); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = ln.Addr().String()
	srv := s.protocol()
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(s.listener(ln)) }) // ends with the listener
	t.Cleanup(func() {
		close(s.closing)
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
		// The error is from ln, which is closed above because Serve may not have started.
		_ = srv.Close()
		serving.Wait()
		s.open.Wait()
	})
	return s
}

// protocol returns the server that speaks SMTP.
func (s *Server) protocol() *smtp.Server {
	srv := smtp.NewServer(smtp.BackendFunc(s.session))
	srv.Domain = "smtptest"
	srv.ErrorLog = log.New(io.Discard, "", 0)
	srv.ReadTimeout, srv.WriteTimeout = time.Minute, time.Minute
	srv.MaxRecipients, srv.MaxMessageBytes = 100, 10<<20
	srv.AllowInsecureAuth = s.mode == plain
	srv.EnableSMTPUTF8 = true
	if s.mode == startTLS {
		srv.TLSConfig = s.server.Clone()
		srv.TLSConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			s.waitAt(StepStartTLS)
			return nil, nil
		}
	}
	return srv
}

// URL returns the server's address as a value of SMTP_URL.
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", Host: s.address}
	switch s.mode {
	case implicit:
		u.Scheme = "smtps"
	case plain:
		u.RawQuery = "tls=none"
	}
	if s.user != "" {
		u.User = url.UserPassword(s.user, s.password)
	}
	return u.String()
}

// TLSConfig returns the configuration of a client that trusts the server's certificate.
func (s *Server) TLSConfig() *tls.Config { return s.client.Clone() }

// Silent returns a channel that is closed once a client waits at the step of SilentAfter.
func (s *Server) Silent() <-chan struct{} { return s.silent }

// Messages returns the messages that the server has accepted, oldest first, one per recipient.
func (s *Server) Messages() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// waitLimit is how long Wait waits.
const waitLimit = 30 * time.Second

// Wait returns the oldest message to an address whose decoded subject contains a text. It waits up
// to 30 seconds for the message, and then fails the test.
func (s *Server) Wait(t testing.TB, to, subjectContains string) Received {
	t.Helper()
	timeout := time.NewTimer(waitLimit)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		received, changed := slices.Clone(s.received), s.changed
		s.mu.Unlock()
		at := slices.IndexFunc(received, func(r Received) bool {
			return strings.EqualFold(r.To, to) && strings.Contains(r.Subject(), subjectContains)
		})
		if at >= 0 {
			return received[at]
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf(
				"got no mail to %s with %q in its subject in %s, only %s",
				to, subjectContains, waitLimit, list(received),
			)
		}
	}
}

// list returns the recipients and subjects of messages.
func list(received []Received) string {
	var out []string
	for _, r := range received {
		out = append(out, r.To+" "+r.Subject())
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (s *Server) add(all []Received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, all...)
	close(s.changed)
	s.changed = make(chan struct{})
}

// waitHeld blocks until Release or the end of the test if Hold applies to the address.
func (s *Server) waitHeld(to string) {
	if s.hold == "" || !strings.HasSuffix(to, s.hold) {
		return
	}
	select {
	case s.held <- to:
	default: // nobody reads that many
	}
	select {
	case <-s.released:
	case <-s.closing:
	}
}

// waitAt blocks until the end of the test if the server is silent at the step.
func (s *Server) waitAt(step Step) {
	if s.silentAt != step {
		return
	}
	s.reach.Do(func() { close(s.silent) })
	<-s.closing
}
