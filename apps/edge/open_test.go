package edge_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

const asJSON = "Content-Type: application/json\r\n"

func TestOpenBodies_AcceptLongestValidBody(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	escaped := func(n int) string { return strings.Repeat(`\u0061`, n) }
	login := func(pad int) string {
		return `{"provider":"LOCAL","email":"` + escaped(242) + `@example.org","password":"` + strings.Repeat(`\ud83d\ude00`, 128) + `"` + strings.Repeat(" ", pad) + "}"
	}
	form := base64.StdEncoding.EncodeToString([]byte("{}" + strings.Repeat(" ", 75_000-2)))
	connect := func(pad int) string {
		return `{"state":"` + escaped(1000) + `","code":"` + form + `","timezone":"Europe/Vienna"` + strings.Repeat(" ", pad) + "}"
	}
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"the longest log-in":         {path: "/auth/login", body: login(0), status: 400}, // wrong password
		"a log-in of 4 KB":           {path: "/auth/login", body: login(4<<10 - len(login(0))), status: 400},
		"a longer one":               {path: "/auth/login", body: login(4<<10 - len(login(0)) + 1), status: 413},
		"the longest connecting":     {path: "/integrations/social-connect/sandbox", body: connect(0), status: 201},
		"a connecting of 150 KB":     {path: "/integrations/social-connect/sandbox", body: connect(150<<10 - len(connect(0))), status: 201},
		"a longer one of a channel":  {path: "/integrations/social-connect/sandbox", body: connect(150<<10 - len(connect(0)) + 1), status: 413},
		"a body that nothing limits": {path: "/auth/login", body: strings.Repeat(" ", 1<<20-10), status: 413},
	} {
		if a := s.Call(t, "POST", c.path, c.body, "Content-Type", "application/json"); a.Status != c.status {
			t.Errorf("%s: got %d, want %d: %.200s", name, a.Status, c.status, a.Body)
		}
	}
}

// stall begins a request that finishes connecting a channel, and sends as much of its body as the
// server reads together with the headers. It sends the status and Retry-After of the response, or
// an error, to answers.
func stall(t *testing.T, r *edgetest.Service, from string, answers chan<- string) net.Conn {
	t.Helper()
	c := dial(t, r, post("/integrations/social-connect/sandbox", asJSON+"X-Forwarded-For: "+from+"\r\n", 150<<10)+strings.Repeat(" ", 16<<10))
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			answers <- err.Error()
			return
		}
		_ = resp.Body.Close() // the connection is closed anyway
		answers <- fmt.Sprint(resp.StatusCode, " after ", resp.Header.Get("Retry-After"))
	}()
	return c
}

const connecting = `{"state":"st","code":"e30="}`

func TestOpenBodies_AreLimitedPerProcess(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1", "REQUEST_TIMEOUT": "10m"})
	const places = 48 << 20 / (150 << 10)
	answers := make(chan string, places+1)
	var stalled []net.Conn
	for i := range places + 1 {
		stalled = append(stalled, stall(t, s, fmt.Sprintf("203.0.%d.%d", i/250, i%250), answers))
	}
	if got := <-answers; got != "503 after 1" {
		t.Errorf("one too many is answered with %s, want 503 after 1", got)
	}
	s.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
	for _, c := range stalled {
		_ = c.Close()
	}
	if a := s.Call(t, "POST", "/integrations/social-connect/sandbox", connecting, "Content-Type", "application/json"); a.Status != 201 {
		t.Errorf("after they have ended: %d %s", a.Status, a.Body)
	}
}

func TestOpenBodies_OneSiteLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1", "REQUEST_TIMEOUT": "10m"})
	const places = 48 << 20 / 8 / (150 << 10)
	answers := make(chan string, places+1)
	for i := range places + 1 {
		stall(t, s, fmt.Sprintf("2001:db8:0:%x::1", i), answers)
	}
	if got := <-answers; got != "503 after 1" {
		t.Errorf("one too many is answered with %s, want 503 after 1", got)
	}
	a := s.Call(t, "POST", "/integrations/social-connect/sandbox", connecting, "Content-Type", "application/json", "X-Forwarded-For", "2001:db8:1::1")
	if a.Status != 201 {
		t.Errorf("another site: %d %s", a.Status, a.Body)
	}
}
