package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/text"
)

const (
	sendLimit = 30 * time.Second // connecting, sending and all replies
	quitLimit = 2 * time.Second  // the reply to QUIT, after the message was accepted
	maxCause  = 500              // bytes of an error text in the log
)

// SMTP sends messages through one mail server. It is safe for concurrent use. Each Send opens a
// connection, so the caller must limit how many calls to Send run at once.
type SMTP struct {
	server server
	from   *mail.Address
	tls    *tls.Config
	clock  clock.Clock
	limit  time.Duration
}

// NewSMTP returns an SMTP for the server in cfg, whose URL must be set. It fails only if cfg is
// invalid; the error does not contain the URL. Send opens the connections, so the server need not
// be reachable yet. If tlsConfig is nil, the system's root certificates are trusted.
func NewSMTP(cfg Config, c clock.Clock, tlsConfig *tls.Config) (*SMTP, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	to, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL: %w", err)
	}
	from, err := parseAddress(cfg.From)
	if err != nil {
		return nil, fmt.Errorf("MAIL_FROM: %w", err)
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{}
	}
	tlsConfig = tlsConfig.Clone()
	tlsConfig.MinVersion = max(tlsConfig.MinVersion, tls.VersionTLS12)
	if tlsConfig.ServerName == "" {
		tlsConfig.ServerName = to.host
	}
	return &SMTP{server: to, from: from, tls: tlsConfig, clock: c, limit: sendLimit}, nil
}

// Send sends a message and returns nil once the server has accepted it. It takes at most 30 s, even
// if the server does not respond. If the server's last reply is lost or the process crashes, the
// server may have accepted the message. Sending the message again can then produce a duplicate.
//
// The error is a fault. It is Invalid if the message is invalid, or if the server permanently
// rejected the message or its recipient (see IsPermanent). Otherwise, it is Unavailable. Its cause
// contains neither the password nor the message text.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	msg, err := s.compose(m)
	if err != nil {
		return &permanent{cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	if err := s.deliver(ctx, msg); err != nil {
		return classify(ctx, err)
	}
	return nil
}

// deliver sends msg over a new connection. The connection is closed if ctx ends.
func (s *SMTP) deliver(ctx context.Context, msg *gomail.Msg) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // every reply that matters was read
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	client, err := gomail.NewClient(s.server.host, s.options(conn, msg)...)
	if err != nil {
		return err
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return greetingError(err)
	}
	if err := client.SendWithSMTPClient(session, msg); err != nil {
		return err
	}
	// The message has been accepted. If a missing reply to QUIT were an error, the caller would
	// send the message again.
	if session.UpdateDeadline(quitLimit) == nil {
		_ = session.Quit()
	}
	return nil
}

func (s *SMTP) connect(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(s.server.host, s.server.port))
	if err != nil {
		return nil, err
	}
	return &boundedConn{Conn: conn, left: maxAnswers}, nil
}

// options returns the options for a client that uses conn.
func (s *SMTP) options(conn net.Conn, msg *gomail.Msg) []gomail.Option {
	policy := gomail.TLSMandatory
	if s.server.security != startTLS {
		policy = gomail.NoTLS // conn is already encrypted, or the operator chose no encryption
	}
	if s.server.security == implicitTLS {
		conn = tls.Client(conn, s.tls)
	}
	options := []gomail.Option{
		gomail.WithDialContextFunc(func(context.Context, string, string) (net.Conn, error) { return conn, nil }),
		gomail.WithTimeout(2 * s.limit), // the context of Send ends first, and closes conn
		gomail.WithTLSConfig(s.tls),
		gomail.WithTLSPolicy(policy),
		gomail.WithoutNoop(),
		gomail.WithoutRset(), // an error reply to RSET would turn success into failure
	}
	if s.server.user != "" {
		options = append(options, gomail.WithUsername(s.server.user), gomail.WithPassword(s.server.password),
			gomail.WithOpportunisticSMTPAuth(
				gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	if isASCII(s.from.Address) && isASCII(msg.GetTo()[0].Address) {
		// With SMTPUTF8, the message would bounce at a relay that does not support that extension.
		options = append(options, gomail.WithoutSMTPUTF8())
	}
	return options
}

// greetingError returns the error for a failure that occurred before the message was sent. It keeps
// only a reply's code, because the text may repeat the command and thus the password.
func greetingError(err error) error {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		return fmt.Errorf(
			"the mail server refused the connection, STARTTLS or authentication with code %d", answer.Code,
		)
	}
	return err
}

// classify converts an error from deliver to a fault.
func classify(ctx context.Context, err error) error {
	const op = "mail.Send"
	cause := errors.New(text.Line(err.Error(), maxCause)) // the server chose the text
	var refused *gomail.SendError
	switch {
	case errors.As(err, &refused) && isRefusal(refused):
		const message = "The mail server refused the message or its recipient."
		return &permanent{cause: fault.Wrap(fault.Invalid, op, message, cause)}
	case ctx.Err() != nil:
		return fault.Wrap(fault.Unavailable, op, "The mail server did not respond in time.", errors.Join(ctx.Err(), cause))
	}
	return fault.Wrap(fault.Unavailable, op, "The mail server cannot be reached or did not accept the mail.", cause)
}

// isRefusal reports whether the server permanently rejected the recipient or the message. It
// returns false if the server rejected the sender or the connection, which the operator can fix.
func isRefusal(err *gomail.SendError) bool {
	switch err.Reason {
	case gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose:
	default:
		return false
	}
	switch err.ErrorCode() {
	case 530, 534, 535, 538: // authentication or encryption required (RFC 4954, RFC 3207)
		return false
	}
	return err.ErrorCode() >= 500
}

// permanent marks an error that would recur on every retry of Send.
type permanent struct{ cause error }

func (p *permanent) Error() string { return p.cause.Error() }

func (p *permanent) Unwrap() error { return p.cause }

// IsPermanent reports whether sending the same message again is pointless. This is the case if the
// message is invalid, or if the server rejected the message or its recipient with a code of 500 or
// above. Failures that an operator can fix, such as a rejected sender, authentication or TLS, are
// not permanent.
func IsPermanent(err error) bool {
	var p *permanent
	return errors.As(err, &p)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}
