package agents

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tests/dbtest"
	"crier/tests/sandboxtest"
	"crier/tests/suite"
)

const (
	password = "correct horse battery"
	patience = time.Minute
)

type m = map[string]any

func TestMain(m *testing.M) { os.Exit(suite.Run(m)) }

// binary returns the path of the service's binary, which it builds for the first test.
var binary = suite.Once(func(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "crier")
	if out, err := exec.Command("go", "build", "-o", path, "crier/apps/crier").CombinedOutput(); err != nil {
		t.Fatalf("build the binary: %v\n%s", err, out)
	}
	return path
})

// service is an installation: a database, a sandbox to publish to, and the processes on them.
type service struct {
	*process
	// base is BASE_URL, an address on loopback with the port of the first process.
	base     string
	database string
	settings map[string]string
	log      *record
	accounts *boot.Accounts
	sandbox  sandboxtest.Judge
	// files is a server of pictures from which the service may upload: see pictureURL.
	files string
}

// common returns the service shared by tests that touch only their own organizations.
var common = suite.Once(func(t testing.TB) *service { return start(t, nil) })

// start runs a service for one test. The settings override the defaults.
func start(t testing.TB, settings map[string]string) *service {
	t.Helper()
	key, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	files := httptest.NewServer(http.HandlerFunc(servePicture))
	t.Cleanup(files.Close)
	s := &service{
		base: "http://127.0.0.1:" + port, database: dbtest.URL(t), log: &record{},
		sandbox: sandboxtest.Judge{URL: sandboxtest.Start(t)}, files: files.URL,
	}
	s.settings = map[string]string{
		"DATABASE_URL": dbtest.Patient(s.database), "DATABASE_MAX_CONNS": "12", "ENCRYPTION_KEYS": key, "FILES_DIR": t.TempDir(),
		"CRIER_HOME": t.TempDir(), "BASE_URL": s.base, "PORT": port, "SANDBOX_URL": s.sandbox.URL, "REGISTRATION": "open",
		// Clients choose their own addresses, because limits count by address.
		"TRUSTED_PROXIES": "127.0.0.1", "API_LIMIT": "100000", "APP_LIMIT": "100000",
		"OUTBOUND_ALLOW": strings.TrimPrefix(files.URL, "http://"), "SWEEP_INTERVAL": "1s",
		"ORGANIZATIONS_PER_DAY": "0", "ORGANIZATIONS_PER_PERSON": "0", "DEFAULT_PLAN_ORGANIZATIONS": "0",
		"DRAIN_DELAY": "0s", "LOG_FORMAT": "json", "LOG_LEVEL": "info",
	}
	for name, value := range settings {
		if name == "OUTBOUND_ALLOW" {
			value = s.settings[name] + "," + value
		}
		s.settings[name] = value
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service's log:\n%s", s.log.worse())
		}
	})
	s.accounts = s.openAccounts(t)
	s.restart(t)
	return s
}

// restart starts the first process, or starts it again.
func (s *service) restart(t testing.TB) {
	t.Helper()
	s.process = launch(t, s.settings, s.log)
}

// second starts another process on the same database and returns its address.
func (s *service) second(t testing.TB) string {
	t.Helper()
	settings := maps.Clone(s.settings)
	settings["PORT"], settings["CRIER_HOME"] = "0", t.TempDir()
	return "http://" + launch(t, settings, &record{}).address
}

// openAccounts returns the account service on the database, with which tests create accounts as an
// administrator does.
func (s *service) openAccounts(t testing.TB) *boot.Accounts {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Config{URL: s.database, MaxConns: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	accounts, err := boot.NewAccounts(boot.AccountsConfig{}, boot.AccountsDeps{DB: db, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	return accounts
}

// freePort returns a port of loopback that nobody listens on.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// pixel is a PNG with one pixel.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")

func servePicture(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "image/png")
	_, _ = w.Write(pixel) // the service reports what is missing
}

// pictureURL returns the address of a picture that the service may fetch.
func (s *service) pictureURL() string { return s.files + "/picture.png" }

// unique returns a name that no other test uses.
func unique(prefix string) string { return prefix + strings.ToLower(rand.Text()[:10]) }

// process is one run of the service.
type process struct {
	cmd     *exec.Cmd
	exited  chan struct{}
	address string // host:port
}

// startLimit is generous because the machine may be busy. An idle one needs a second.
const startLimit = time.Minute

// launch runs "crier serve" and returns once it is ready.
func launch(t testing.TB, settings map[string]string, log *record) *process {
	t.Helper()
	cmd := exec.Command(binary(t), "serve")
	cmd.Env = []string{}
	for name, v := range settings {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	ready := log.begin()
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // callers that wait for exited use ProcessState
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	select {
	case p.address = <-ready:
	case <-p.exited:
		t.Fatalf("the service ended instead of starting: %v\n%s", cmd.ProcessState, log.worse())
	case <-time.After(startLimit):
		t.Fatalf("the service was not ready within %s", startLimit)
	}
	return p
}

// kill sends SIGKILL to the process group and returns when the process has ended.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails only if it has ended
	<-p.exited
}

// record is the log of a process, across restarts.
type record struct {
	mu    sync.Mutex
	all   bytes.Buffer
	line  []byte
	ready chan string
}

func (r *record) begin() <-chan string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.line = make(chan string, 1), nil
	return r.ready
}

// Write appends to the log. It sends the address in the line "crier is ready" to the channel ready.
func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Write(b)
	r.line = append(r.line, b...)
	for {
		end := bytes.IndexByte(r.line, '\n')
		if end < 0 {
			return len(b), nil
		}
		var entry struct{ Msg, Address string }
		if json.Unmarshal(r.line[:end], &entry) == nil && entry.Msg == "crier is ready" {
			r.ready <- entry.Address
		}
		r.line = r.line[end+1:]
	}
}

// text returns the whole log.
func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// worse returns the errors in the log, and the lines that are not log records.
func (r *record) worse() string {
	var out strings.Builder
	for line := range strings.Lines(r.text()) {
		if !strings.HasPrefix(line, "{") || strings.Contains(line, `"level":"ERROR"`) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// await polls until ok returns true, and fails the test after patience. state describes the last
// state.
func await(t testing.TB, what string, ok func() bool, state func() string) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen within %s; got %s", what, patience, state())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// browserless returns a client that follows no redirect and opens a connection for each request,
// because processes are killed and restarted.
func browserless() *http.Client {
	return &http.Client{
		Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// address returns a client address that no other test uses.
func address() string {
	b := make([]byte, 2)
	if _, err := io.ReadFull(rand.Reader, b); err != nil {
		return "198.51.100.1" // crypto/rand does not fail
	}
	return fmt.Sprintf("198.51.%d.%d", b[0], cmp.Or(b[1], 1))
}

// decode decodes a JSON text into v, and fails the test if it cannot.
func decode(t testing.TB, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%v in %s", err, text)
	}
}
