//go:build long

package oauth_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"crier/tests/browser"
	"crier/tests/edgetest"
)

// TestConsent_InChromium signs in and approves with and without JavaScript. With JavaScript, axe
// must find nothing.
func TestConsent_InChromium(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + ln.Addr().String()
	s, server := edgetest.NewOAuth(t, map[string]string{"BASE_URL": base})
	forward(t, ln, strings.TrimPrefix(s.URL, "http://"))
	for _, javaScript := range []bool{false, true} {
		got := browser.Approve(t, browser.Consent{
			Start: base + "/oauth/authorize?" + request(), Email: edgetest.Ada, Password: "right", JavaScript: javaScript, Client: planner,
		})
		for _, sentence := range got.Wrong {
			t.Errorf("JavaScript %v: %s", javaScript, sentence)
		}
		u, err := url.Parse(got.Address)
		if err != nil || u.Query().Get("code") != "crc_code" || u.Query().Get("iss") != base || u.Query().Get("state") != "the state" {
			t.Errorf("JavaScript %v: the browser was led to %q through %q", javaScript, got.Address, got.Pages)
		}
	}
	if c := server.Consents; len(c) != 2 || !c[0].Limits.MustAsk || !c[1].Limits.MustAsk {
		t.Errorf("the consents are %+v, want two that are limited to drafts", c)
	}
}

// forward passes connections of ln on to an address until the test ends.
func forward(t *testing.T, ln net.Listener, address string) {
	t.Helper()
	t.Cleanup(func() {
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			in, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			// A copy ends when the browser or the server closes the connection.
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}
