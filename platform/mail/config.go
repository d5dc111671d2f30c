// Package mail sends email over SMTP. For development, Box keeps messages in memory instead.
package mail

import (
	"errors"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Config configures the mail server and the sender of all messages.
type Config struct {
	// URL is empty if this instance sends no email. It may include a password. smtp:// requires
	// STARTTLS, and smtps:// uses TLS from the first byte. smtp://host?tls=none uses no TLS and is
	// valid only for hosts on loopback. Example: smtps://crier:password@mail.example.com:465
	URL string `env:"SMTP_URL" doc:"URL of the mail server: smtp:// (STARTTLS) or smtps://, followed by [user:password@]host[:port]."`
	// From is an RFC 5322 address with an optional name. Example: Crier <crier@example.com>
	From string `env:"MAIL_FROM" doc:"Sender of all emails, such as Crier <crier@example.com>; required with SMTP_URL."`
}

// Enabled reports whether a mail server is configured.
func (c Config) Enabled() bool { return c.URL != "" }

// Validate returns an error that joins all faults in the configuration. The error does not contain
// the URL, which may include a password.
func (c Config) Validate() error {
	var faults []error
	add := func(name, sentence string) { faults = append(faults, errors.New(name+": "+sentence)) }
	if c.URL != "" {
		if _, err := parseURL(c.URL); err != nil {
			add("SMTP_URL", err.Error())
		}
		if c.From == "" {
			add("MAIL_FROM", "is required with SMTP_URL: the sender of all mail")
		}
	}
	if c.From != "" {
		if _, err := parseAddress(c.From); err != nil {
			add("MAIL_FROM", "must be one email address, with or without a name, such as Crier <crier@example.com>")
		}
	}
	return errors.Join(faults...)
}

// security is how a connection is encrypted.
type security int

const (
	startTLS security = iota
	implicitTLS
	noTLS
)

// The default ports.
const (
	startTLSPort    = "587"
	implicitTLSPort = "465"
	noTLSPort       = "25"
)

// server holds the parts of a mail server's URL.
type server struct {
	host, port     string
	security       security
	user, password string // both empty without authentication
}

// parseURL parses SMTP_URL. The error text is a predicate without a subject. It omits the cause,
// which may contain the password.
func parseURL(raw string) (server, error) {
	errForm := errors.New("must be smtp://[user:password@]host[:port] or smtps://[user:password@]host[:port]")
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return server{}, errForm
	}
	s := server{host: u.Hostname()}
	switch {
	case u.Scheme == "smtp" && u.RawQuery == "":
		s.security, s.port = startTLS, startTLSPort
	case u.Scheme == "smtps" && u.RawQuery == "":
		s.security, s.port = implicitTLS, implicitTLSPort
	case u.Scheme == "smtp" && u.RawQuery == "tls=none":
		s.security, s.port = noTLS, noTLSPort
	default:
		return server{}, errForm
	}
	if s.security == noTLS && !loopback(s.host) {
		return server{}, errors.New("must use TLS: tls=none is allowed only for a server on loopback")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return server{}, errors.New("must have a port from 1 to 65535")
		}
		s.port = port
	}
	return s.withUser(u.User)
}

// withUser returns s with the user name and password from a URL.
func (s server) withUser(info *url.Userinfo) (server, error) {
	if info == nil {
		return s, nil
	}
	s.user = info.Username()
	s.password, _ = info.Password()
	if s.user == "" || s.password == "" || hasControl(s.user+s.password) {
		return server{}, errors.New("must have both a user and a password, percent-encoded, or neither")
	}
	return s, nil
}

// loopback reports whether a host is localhost or a loopback address.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// parseAddress parses one RFC 5322 address with an optional name, of at most maxAddress bytes.
func parseAddress(s string) (*mail.Address, error) {
	if len(s) > maxAddress || hasControl(s) {
		return nil, errors.New("the address is too long or has a control character")
	}
	return mail.ParseAddress(s)
}

// hasControl reports whether s has an ASCII control character, such as a line break or NUL.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
