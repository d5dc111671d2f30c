package smtptest

import (
	"net/smtp"
	"strings"
	"testing"
)

// send sends a raw message with the standard library's client.
func send(t *testing.T, s *Server, to, raw string) error {
	t.Helper()
	client, err := smtp.Dial(s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if s.mode == startTLS {
		config := s.TLSConfig()
		config.ServerName = "127.0.0.1"
		if err := client.StartTLS(config); err != nil {
			return err
		}
	}
	if err := client.Mail("from@example.com"); err != nil {
		return err
	}
	if err := client.Rcpt(to); err != nil {
		return err
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(strings.ReplaceAll(raw, "\n", "\r\n"))); err != nil {
		return err
	}
	return w.Close()
}

const alternative = `Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Gr=C3=BC=
=C3=9Fe
--b
Content-Type: text/html; charset=UTF-8

<p>hi</p>
--b--
`

func TestServer_ReceivesMultipart(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"STARTTLS": nil, "plain": {Plain()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, opts...)
			sent := make(chan error, 1)
			go func() { sent <- send(t, s, "to@example.com", alternative) }()
			got := s.Wait(t, "TO@example.com", "Grüße")
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			if got.Text != "Grüße" || got.HTML != "<p>hi</p>" || got.From != "from@example.com" || got.To != "to@example.com" {
				t.Errorf("got %+v, want the decoded parts and the addresses of the envelope", got)
			}
			if n := len(s.Messages()); n != 1 {
				t.Errorf("got %d messages, want 1", n)
			}
		})
	}
}

func TestServer_RefusesOnRequest(t *testing.T) {
	t.Parallel()
	s := Start(t, Plain(), Refuse("gone@example.com", 550), Refuse("busy@example.com", 451))
	for to, code := range map[string]string{"gone@example.com": "550", "busy@example.com": "451"} {
		if err := send(t, s, to, alternative); err == nil || !strings.HasPrefix(err.Error(), code) {
			t.Errorf("%s: got %v, want an answer with %s", to, err, code)
		}
	}
	if got := s.Messages(); len(got) != 0 {
		t.Errorf("got %s, want no message", list(got))
	}
}

func TestServer_RefusesUnparsableMessages(t *testing.T) {
	t.Parallel()
	s := Start(t, Plain())
	for name, raw := range map[string]string{
		"an image":            "Content-Type: image/png\n\nx",
		"another charset":     "Content-Type: text/plain; charset=latin1\n\nx",
		"an unknown encoding": "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: uu\n\nx",
		"no header":           "x",
		"a missing end":       strings.TrimSuffix(alternative, "--b--\n"),
	} {
		if err := send(t, s, "to@example.com", raw); err == nil {
			t.Errorf("%s: got no error, want a refusal", name)
		}
	}
}

func TestURL_NamesMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opts           []Option
		prefix, suffix string
	}{
		{prefix: "smtp://127.0.0.1:"},
		{opts: []Option{Plain()}, prefix: "smtp://127.0.0.1:", suffix: "?tls=none"},
		{opts: []Option{Implicit(), Login("u", "p@")}, prefix: "smtps://u:p%40@127.0.0.1:"},
	} {
		got := Start(t, c.opts...).URL()
		if !strings.HasPrefix(got, c.prefix) || !strings.HasSuffix(got, c.suffix) {
			t.Errorf("got %s, want %s…%s", got, c.prefix, c.suffix)
		}
	}
}
