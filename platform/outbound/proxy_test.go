package outbound

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
)

// A proxy would connect to addresses that the guard does not check. net/http reads the variables
// once, so the requests are made by a child process that runs this test again.
func TestClient_IgnoresProxyVariables(t *testing.T) {
	t.Parallel()
	if proxy := os.Getenv("PROXY_OF_TEST"); proxy != "" {
		requestPastProxy(t, proxy)
		return
	}
	var proxied atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
	t.Cleanup(proxy.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestClient_IgnoresProxyVariables$", "-test.v", "-test.timeout=1m")
	child.Env = append(os.Environ(), "PROXY_OF_TEST="+proxy.Listener.Addr().String())
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		child.Env = append(child.Env, name+"="+proxy.URL, strings.ToLower(name)+"="+proxy.URL)
	}
	child.Env = append(child.Env, "NO_PROXY=", "no_proxy=")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestClient_IgnoresProxyVariables") {
		t.Errorf("the child process: got %v, want it passed\n%s", err, out)
	}
	if n := proxied.Load(); n != 0 {
		t.Errorf("the proxy got %d requests, want none", n)
	}
}

// requestPastProxy makes requests of every kind to a server whose name is not a loopback name,
// because net/http never uses a proxy for loopback.
func requestPastProxy(t *testing.T, proxy string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") == "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if conn, _ := websocket.Accept(w, req, nil); conn != nil {
			_ = conn.CloseNow()
		}
	}))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	host := "platform.example:" + port
	c := newClient(t, Deps{Resolver: fakeDNS(t, func(string, int) [4]byte { return [4]byte{127, 0, 0, 1} })}, host, proxy)
	// The server has no TLS: only the address that is called matters.
	for _, scheme := range []string{"http", "https"} {
		if resp, err := get(t, c, scheme+"://"+host); scheme == "http" && (err != nil || resp.StatusCode != http.StatusTeapot) {
			t.Errorf("a read: got %v, %v; want 418", resp, err)
		}
		resp, err := c.Commit(post(t, t.Context(), scheme+"://"+host))
		if scheme == "http" && (err != nil || resp.StatusCode != http.StatusTeapot) {
			t.Errorf("a commit: got %v, %v; want 418", resp, err)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
	}
	for _, scheme := range []string{"ws", "wss"} {
		conn, err := c.DialWebsocket(t.Context(), scheme+"://"+host)
		if scheme == "ws" && err != nil {
			t.Errorf("a websocket: got %v, want a connection", err)
		}
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
}
