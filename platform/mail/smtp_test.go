package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"net/mail"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/tests/smtptest"
)

var noon = clock.Func(func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) })

// open returns a sender that uses the server at url.
func open(t *testing.T, url string, config *tls.Config) *SMTP {
	t.Helper()
	s, err := NewSMTP(Config{URL: url, From: "Crier <crier@example.com>"}, noon, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hello() Message {
	return Message{To: "ann@example.com", Subject: "Hello", Text: "Good day\n", HTML: "<p>Good day</p>"}
}

func TestSend_DeliversByEachSecurity(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]smtptest.Option{
		"STARTTLS":          nil,
		"STARTTLS and AUTH": {smtptest.Login("user", "p:w @")},
		"implicit TLS":      {smtptest.Implicit(), smtptest.Login("user", "p:w @")},
		"no TLS":            {smtptest.Plain()},
		"no TLS and AUTH":   {smtptest.Plain(), smtptest.Login("user", "p:w @")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := smtptest.Start(t, opts...)
			if err := open(t, server.URL(), server.TLSConfig()).Send(t.Context(), hello()); err != nil {
				t.Fatal(err)
			}
			got := server.Wait(t, "ann@example.com", "Hello")
			if got.From != "crier@example.com" || got.Text != hello().Text || got.HTML != hello().HTML {
				t.Errorf("got %+v, want the message from crier@example.com", got)
			}
		})
	}
}

func TestSend_WritesHeaders(t *testing.T) {
	t.Parallel()
	server := smtptest.Start(t)
	sender := open(t, server.URL(), server.TLSConfig())
	long := strings.Repeat("ä", 100) + " =?utf-8?q?=0D=0ABcc:_x?="
	m := Message{
		To: `"Änne, Ö." <ann@example.com>`, Subject: "Grüße 🎉 " + long, Text: "Ünïcode\n.\n" + strings.Repeat("x", 5000) + "\n",
		Unsubscribe: "https://crier.example/u?t=" + strings.Repeat("a", 200) + "&x=1",
	}
	for range 2 {
		if err := sender.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got := server.Wait(t, "ann@example.com", "Grüße 🎉")
	if want := strings.ReplaceAll(m.Subject, "=?", "= ?"); got.Subject() != want {
		t.Errorf("got the subject %q, want %q", got.Subject(), want)
	}
	if got.Text != m.Text || got.HTML != "" {
		t.Errorf("got the text %.60q and HTML %q, want %.60q", got.Text, got.HTML, m.Text)
	}
	to, err := got.Header.AddressList("To")
	if err != nil || len(to) != 1 || *to[0] != (mail.Address{Name: "Änne, Ö.", Address: "ann@example.com"}) {
		t.Errorf("got the recipients %v and %v", to, err)
	}
	for name, want := range map[string]string{
		"Auto-Submitted":        "auto-generated",
		"List-Unsubscribe":      "<" + m.Unsubscribe + ">",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		"Date":                  "Fri, 02 Jan 2026 12:00:00 +0000",
		"From":                  `"Crier" <crier@example.com>`,
		"Bcc":                   "",
		"User-Agent":            "",
	} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	all := server.Messages()
	first, second := all[0].Header.Get("Message-Id"), all[1].Header.Get("Message-Id")
	if first == second || !strings.HasSuffix(first, "@example.com>") {
		t.Errorf("got the message ids %s and %s, want two of example.com", first, second)
	}
}

func TestSend_RefusesHeaderInjection(t *testing.T) {
	t.Parallel()
	server := smtptest.Start(t, smtptest.Plain())
	sender, box := open(t, server.URL(), nil), NewBox(noon)
	for name, change := range map[string]func(*Message){
		"CRLF in the subject":      func(m *Message) { m.Subject = "a\r\nBcc: x@example.com" },
		"LF in the subject":        func(m *Message) { m.Subject = "a\nBcc: x@example.com" },
		"NUL in the subject":       func(m *Message) { m.Subject = "a\x00" },
		"no subject":               func(m *Message) { m.Subject = "" },
		"a long subject":           func(m *Message) { m.Subject = strings.Repeat("a", 501) },
		"CRLF in the address":      func(m *Message) { m.To = "ann@example.com\r\nBcc: x@example.com" },
		"CRLF in the name":         func(m *Message) { m.To = "\"a\r\nBcc: x\" <ann@example.com>" },
		"NUL in the address":       func(m *Message) { m.To = "ann\x00@example.com" },
		"two addresses":            func(m *Message) { m.To = "ann@example.com, bob@example.com" },
		"no address":               func(m *Message) { m.To = "" },
		"no text":                  func(m *Message) { m.Text = "" },
		"text that is not UTF-8":   func(m *Message) { m.Text = "\xff" },
		"http to unsubscribe":      func(m *Message) { m.Unsubscribe = "http://crier.example/u" },
		"CRLF to unsubscribe":      func(m *Message) { m.Unsubscribe = "https://crier.example/\r\nBcc: x" },
		"a bracket to unsubscribe": func(m *Message) { m.Unsubscribe = "https://crier.example/?a=>,<mailto:x" },
	} {
		m := hello()
		change(&m)
		for _, err := range []error{sender.Send(t.Context(), m), box.Send(t.Context(), m)} {
			if !fault.Is(err, fault.Invalid) || !IsPermanent(err) {
				t.Errorf("%s: got %v, want a permanent fault of kind invalid", name, err)
			}
		}
	}
	if got := len(server.Messages()) + len(box.Messages()); got != 0 {
		t.Errorf("got %d messages, want none", got)
	}
}

func TestSend_MarksPermanentRefusals(t *testing.T) {
	t.Parallel()
	login := smtptest.Login("user", "password")
	for name, c := range map[string]struct {
		opts      []smtptest.Option
		change    func(url string) string
		permanent bool
	}{
		"recipient 550": {opts: []smtptest.Option{smtptest.Refuse("ann@example.com", 550)}, permanent: true},
		"recipient 451": {opts: []smtptest.Option{smtptest.Refuse("ann@example.com", 451)}},
		"recipient 530": {opts: []smtptest.Option{smtptest.Refuse("ann@example.com", 530)}},
		"message 554":   {opts: []smtptest.Option{smtptest.RefuseMessage(554)}, permanent: true},
		"message 452":   {opts: []smtptest.Option{smtptest.RefuseMessage(452)}},
		"sender 550":    {opts: []smtptest.Option{smtptest.RefuseSender(550)}},
		"wrong password": {
			opts:   []smtptest.Option{login},
			change: func(url string) string { return strings.Replace(url, ":password@", ":hunter2@", 1) },
		},
		"no password": {
			opts:   []smtptest.Option{login},
			change: func(url string) string { return strings.Replace(url, "user:password@", "", 1) },
		},
		"no AUTH": {change: func(url string) string { return strings.Replace(url, "://", "://user:hunter2@", 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := smtptest.Start(t, c.opts...)
			url := server.URL()
			if c.change != nil {
				url = c.change(url)
			}
			err := open(t, url, server.TLSConfig()).Send(t.Context(), hello())
			want := fault.Unavailable
			if c.permanent {
				want = fault.Invalid
			}
			if fault.KindOf(err) != want || IsPermanent(err) != c.permanent {
				t.Errorf("got %v, permanent %t, want kind %s, permanent %t", err, IsPermanent(err), want, c.permanent)
			}
			if strings.Contains(err.Error(), "hunter2") || len(server.Messages()) != 0 {
				t.Errorf("got %v and %d messages, want an error without the password and no message", err, len(server.Messages()))
			}
		})
	}
}

func TestSend_RefusesUnsafeConnections(t *testing.T) {
	t.Parallel()
	withoutTLS, trusted := smtptest.Start(t, smtptest.Plain()), smtptest.Start(t)
	otherHost := trusted.TLSConfig()
	otherHost.ServerName = "mail.example.com"
	for name, sender := range map[string]*SMTP{
		"a server without STARTTLS":     open(t, strings.TrimSuffix(withoutTLS.URL(), "?tls=none"), nil),
		"a certificate not trusted":     open(t, trusted.URL(), nil),
		"a certificate of another host": open(t, trusted.URL(), otherHost),
		"a server without TLS":          open(t, "smtps"+strings.TrimSuffix(strings.TrimPrefix(withoutTLS.URL(), "smtp"), "?tls=none"), nil),
	} {
		if err := sender.Send(t.Context(), hello()); !fault.Is(err, fault.Unavailable) || IsPermanent(err) {
			t.Errorf("%s: got %v, want a temporary fault of kind unavailable", name, err)
		}
	}
	if n := len(withoutTLS.Messages()) + len(trusted.Messages()); n != 0 {
		t.Errorf("got %d messages, want none", n)
	}
}

func TestSend_EndsWhenServerIsSilent(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]smtptest.Option{
		"before the greeting":     {smtptest.SilentAfter(smtptest.StepConnect)},
		"in the handshake of TLS": {smtptest.SilentAfter(smtptest.StepConnect), smtptest.Implicit()},
		"after EHLO":              {smtptest.SilentAfter(smtptest.StepGreet)},
		"after STARTTLS":          {smtptest.SilentAfter(smtptest.StepStartTLS)},
		"after AUTH":              {smtptest.SilentAfter(smtptest.StepAuth), smtptest.Login("user", "password")},
		"after MAIL":              {smtptest.SilentAfter(smtptest.StepMail)},
		"after RCPT":              {smtptest.SilentAfter(smtptest.StepRcpt)},
		"after the message":       {smtptest.SilentAfter(smtptest.StepData)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := smtptest.Start(t, opts...)
			sender := open(t, server.URL(), server.TLSConfig())
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-server.Silent()
				cancel()
			}()
			if err := sender.Send(ctx, hello()); !fault.Is(err, fault.Unavailable) || ctx.Err() == nil {
				t.Errorf("canceled: got %v, want a fault of kind unavailable after the silence", err)
			}
			sender.limit = 200 * time.Millisecond
			err := sender.Send(t.Context(), hello())
			if !fault.Is(err, fault.Unavailable) || IsPermanent(err) || !strings.Contains(err.Error(), "did not respond in time") {
				t.Errorf("deadline: got %v, want a temporary fault about the time", err)
			}
		})
	}
}

func TestSend_SucceedsWhenOnlyQuitIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]smtptest.Option{"STARTTLS": nil, "implicit TLS": {smtptest.Implicit()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := smtptest.Start(t, append(opts, smtptest.SilentAfter(smtptest.StepQuit))...)
			if err := open(t, server.URL(), server.TLSConfig()).Send(t.Context(), hello()); err != nil {
				t.Errorf("got %v, want success: the message was accepted", err)
			}
			if n := len(server.Messages()); n != 1 {
				t.Errorf("got %d messages, want 1", n)
			}
		})
	}
}

func TestSend_ErrorNamesUnreachableServer(t *testing.T) {
	t.Parallel()
	var f *fault.Error
	err := classify(t.Context(), errors.New("dial tcp 127.0.0.1:1: connect: connection refused"))
	if !errors.As(err, &f) || f.Kind != fault.Unavailable || !strings.Contains(f.Message, "mail server") {
		t.Errorf("got %v, want Unavailable that names the mail server", err)
	}
}
