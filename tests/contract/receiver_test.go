package contract

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/tests/syncbuffer"
)

// receivers runs the servers on the webhooks page: the names of their files and the command. The
// servers listen on PORT.
var receivers = map[string]struct {
	receiver, verify string
	command          func(t *testing.T, dir string, port string) []string
}{
	"go": {receiver: "main.go", verify: "verify.go", command: func(t *testing.T, dir, _ string) []string {
		execute(t, dir, nil, nil, program(t, "go"), "build", "-o", "receiver", ".")
		return []string{"./receiver"}
	}},
	"typescript": {receiver: "receiver.ts", verify: "verify.ts", command: func(t *testing.T, _, _ string) []string {
		return []string{node(t), "receiver.ts"}
	}},
	"python": {receiver: "receiver.py", verify: "verify.py", command: func(t *testing.T, _, _ string) []string {
		return []string{program(t, "python3"), "receiver.py"}
	}},
	"php": {receiver: "receiver.php", verify: "verify.php", command: func(t *testing.T, _, port string) []string {
		return []string{program(t, "php"), "-S", "127.0.0.1:" + port, "receiver.php"}
	}},
}

// TestReceivers_HandleDeliveryOnce checks that the servers on the page accept a delivery of the
// service twice but handle it once, and refuse a delivery that the service has not signed.
func TestReceivers_HandleDeliveryOnce(t *testing.T) {
	t.Parallel()
	ports := map[string]net.Listener{}
	var allowed []string
	for language := range receivers {
		ports[language] = heldPort(t)
		allowed = append(allowed, ports[language].Addr().String())
	}
	r := start(t, map[string]string{"OUTBOUND_ALLOW": strings.Join(allowed, ",")})
	page := r.samples(t, "/docs/webhooks")
	for language, held := range ports {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			o := r.organization(t)
			url := "http://" + held.Addr().String() + "/"
			h := read[hook](t, o.do(t, http.MethodPost, "/webhooks", m{"name": "Receiver", "url": url}).want(t, http.StatusCreated))
			output := receive(t, page, language, held, h.Secret)
			path := "/webhooks/" + h.ID
			id := read[named](t, o.do(t, http.MethodPost, path+"/test", nil).want(t, http.StatusCreated)).ID
			o.attempted(t, path, id, 1)
			o.do(t, http.MethodPost, path+"/deliveries/"+id+"/replay", nil).want(t, http.StatusCreated)
			o.attempted(t, path, id, 2)
			if status := postForged(t, url, id); status != http.StatusUnauthorized {
				t.Errorf("a delivery with a wrong signature is answered with %d, want 401", status)
			}
			if n := strings.Count(output.String(), `"event":"webhook.test"`); n != 1 {
				t.Errorf("the work was done %d times, want once:\n%s", n, output)
			}
		})
	}
}

// attempted waits until a delivery has succeeded on its nth attempt.
func (o org) attempted(t *testing.T, path, id string, n int) {
	t.Helper()
	var a answer
	eventually(t, fmt.Sprintf("attempt %d", n), func() bool {
		a = o.get(t, path+"/deliveries").want(t, http.StatusOK)
		got := read[[]delivery](t, a)
		i := slices.IndexFunc(got, func(d delivery) bool { return d.ID == id })
		return i >= 0 && got[i].State == "delivered" && got[i].Attempts == n
	}, func() any { return a.Body })
}

// receive starts the server of a language and returns its output. The server gets the port that
// held gives up at the last moment, and is listening when receive returns.
func receive(t *testing.T, page []sample, language string, held net.Listener, secret string) *syncbuffer.Buffer {
	t.Helper()
	_, port, err := net.SplitHostPort(held.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	code := func(operation string) string {
		i := slices.IndexFunc(page, func(s sample) bool { return s.language == language && s.operation == operation })
		if i < 0 {
			t.Fatalf("the page has no %s in %s", operation, language)
		}
		return strings.Replace(page[i].code, "package webhook", "package main", 1)
	}
	dir, files, run := t.TempDir(), project(), receivers[language]
	files[run.receiver], files[run.verify] = code("receiver"), code("verify")
	write(t, dir, files)
	command := run.command(t, dir, port)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	output := &syncbuffer.Buffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, output, output, 5*time.Second
	cmd.Env = append(os.Environ(), "PORT="+port, "WEBHOOK_SECRET="+secret, "TMPDIR="+dir)
	if err := errors.Join(held.Close(), cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // the error says that it was killed
	})
	eventually(t, "the receiver", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, func() any { return output.String() })
	return output
}

// postForged sends a body with a wrong signature and returns the status of the response.
func postForged(t *testing.T, url, id string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`[{"event":"webhook.test"}]`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", id+"0")
	req.Header.Set("webhook-timestamp", fmt.Sprint(time.Now().Unix()))
	req.Header.Set("webhook-signature", "v1,"+strings.Repeat("A", 43)+"=")
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// heldPort returns a listener on a free port, which no other server can get until the listener is
// closed.
func heldPort(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}
