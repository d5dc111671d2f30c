package smtptest

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// session is a connection after EHLO.
type session struct {
	server   *Server
	conn     *conn
	loggedIn bool
	from     string
	to       []string
}

// session is called for each EHLO, so twice with STARTTLS.
func (s *Server) session(c *smtp.Conn) (smtp.Session, error) {
	s.waitAt(StepGreet)
	raw := c.Conn()
	if encrypted, ok := raw.(*tls.Conn); ok {
		raw = encrypted.NetConn()
	}
	inner, ok := raw.(*conn)
	if !ok {
		return nil, fmt.Errorf("got a connection of type %T", raw)
	}
	return &session{server: s, conn: inner, loggedIn: s.user == ""}, nil
}

// AuthMechanisms returns the mechanisms for AUTH. Without Login there are none.
func (s *session) AuthMechanisms() []string {
	if s.server.user == "" {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth returns the server's side of AUTH PLAIN.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.server.waitAt(StepAuth)
		if user != s.server.user || password != s.server.password {
			return smtp.ErrAuthFailed
		}
		s.loggedIn = true
		return nil
	}), nil
}

// Mail accepts the sender. If Login is set, it refuses every sender before the log-in.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.server.waitAt(StepMail)
	if !s.loggedIn {
		return answer(530, "Authentication required")
	}
	if code := s.server.refusedSender; code != 0 {
		return answer(code, "Sender refused")
	}
	s.from = from
	return nil
}

// Rcpt accepts a recipient, except those in Refuse.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.waitAt(StepRcpt)
	s.server.waitHeld(to)
	if code := s.server.refused[to]; code != 0 {
		return answer(code, "Recipient refused")
	}
	s.to = append(s.to, to)
	return nil
}

// Data accepts the message. It refuses a message that cannot be parsed, with the reason.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.server.waitAt(StepData)
	if code := s.server.refusedMessage; code != 0 {
		return answer(code, "Message refused")
	}
	received, err := parse(raw)
	if err != nil {
		return err
	}
	var all []Received
	for _, to := range s.to {
		received.From, received.To = s.from, to
		all = append(all, received)
	}
	s.server.add(all)
	s.conn.accepted.Store(true)
	return nil
}

// Reset clears the sender and the recipients.
func (s *session) Reset() { s.from, s.to = "", nil }

// Logout returns nil.
func (s *session) Logout() error { return nil }

func answer(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 0, 0}, Message: text}
}

// listener wraps each connection in a conn and, with Implicit, in TLS.
type listener struct {
	net.Listener
	server *Server
}

func (s *Server) listener(ln net.Listener) net.Listener {
	l := &listener{Listener: ln, server: s}
	if s.mode == implicit {
		return tls.NewListener(l, s.server)
	}
	return l
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.server.open.Go(func() {
		<-l.server.closing
		// The protocol does not close a connection that it accepts while it is being closed.
		_ = c.Close()
	})
	return &conn{Conn: c, server: l.server}, nil
}

// conn is the connection below TLS. It is silent at StepConnect and StepQuit, for which the
// protocol has no hooks.
type conn struct {
	net.Conn
	server   *Server
	accepted atomic.Bool // a message has been accepted
}

// Read blocks at StepQuit, before the command that follows the message.
func (c *conn) Read(p []byte) (int, error) {
	if c.accepted.Load() {
		c.server.waitAt(StepQuit)
	}
	return c.Conn.Read(p)
}

// Write blocks at StepConnect, before the greeting.
func (c *conn) Write(p []byte) (int, error) {
	c.server.waitAt(StepConnect)
	return c.Conn.Write(p)
}
