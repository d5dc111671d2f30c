package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp/totp"

	"crier/platform/secret"
	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/smtptest"
	"crier/tests/suite"
)

const (
	// instanceURL is BASE_URL. The processes are behind a proxy that adds X-Forwarded-For.
	instanceURL = "https://crier.example"
	frontendURL = instanceURL + "/app"
	// stuck is an address whose mails stay queued, because the mail server refuses it temporarily.
	stuck = "stuck@corp.example"
	// lateLimit is how long an effect may take that the next request need not see.
	lateLimit = time.Minute
)

// instance is a service of two processes on one database, with a mail server and Redis.
type instance struct {
	database string
	settings map[string]string
	mail     *smtptest.Server
	nodes    [2]*node
	heard    *heard
	conn     *pgx.Conn // the superuser's connection, see super
}

// node is a process of an instance, across restarts.
type node struct {
	*process
	settings map[string]string
	log      *record
}

// heard records the responses that all browsers of an instance got.
type heard struct {
	mu  sync.Mutex
	all []answerRecord
}

// answerRecord is one response. cookies holds its Set-Cookie headers.
type answerRecord struct{ where, head, cookies, body string }

func (h *heard) add(where string, a call.Answer) {
	head := a.Header.Clone()
	cookies := strings.Join(head.Values("Set-Cookie"), "\n")
	head.Del("Set-Cookie")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, answerRecord{where: where, head: fmt.Sprint(head), cookies: cookies, body: a.Body})
}

// common returns the instance shared by tests that change only their own accounts. Each test uses
// addresses in a separate domain.
var common = suite.Once(func(t testing.TB) *instance { return startInstance(t, map[string]string{"APP_LIMIT": "100000"}) })

// startInstance starts both processes. The settings override the defaults.
func startInstance(t testing.TB, settings map[string]string) *instance {
	t.Helper()
	key, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s := &instance{database: dbtest.URL(t), heard: &heard{}}
	s.mail = smtptest.Start(t, smtptest.Plain(), smtptest.Refuse(stuck, 451))
	s.settings = map[string]string{
		"DATABASE_URL": dbtest.Patient(s.database), "DATABASE_MAX_CONNS": "12", "ENCRYPTION_KEYS": key, "FILES_DIR": t.TempDir(),
		"REDIS_URL": "redis://" + miniredis.RunT(t).Addr(), "SMTP_URL": s.mail.URL(), "MAIL_FROM": "Crier <crier@crier.example>",
		"BASE_URL": instanceURL, "REGISTRATION": "open", "TRUSTED_PROXIES": "127.0.0.1", "PORT": "0",
		"METRICS_LISTEN": "127.0.0.1:0", "CLUSTER_LISTEN": "127.0.0.1:0", "LEASE_TTL": "3s", "HEARTBEAT_INTERVAL": "500ms",
		"DRAIN_DELAY": "0s", "LOG_FORMAT": "json", "LOG_LEVEL": "debug",
	}
	maps.Copy(s.settings, settings)
	for i := range s.nodes {
		n := &node{settings: maps.Clone(s.settings), log: &record{}}
		n.settings["CRIER_HOME"] = t.TempDir()
		s.nodes[i] = n
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the log of process %d:\n%s", i, n.log.worse())
			}
		})
		n.start(t, binary)
	}
	return s
}

// start starts a process from the binary at path. It may be called again after the process has
// ended.
func (n *node) start(t testing.TB, path string) {
	t.Helper()
	if path == binary {
		n.process = launch(t, n.settings, n.log)
		return
	}
	n.process = launchOther(t, path, n.settings, n.log)
}

// launchOther is like launch for another build of the binary.
func launchOther(t testing.TB, path string, settings map[string]string, log *record) *process {
	t.Helper()
	cmd := exec.Command(path, "serve")
	cmd.Env = []string{}
	for name, v := range settings {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	ready := log.begin()
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{cmd: cmd, exited: make(chan struct{}), started: time.Now()}
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
		t.Fatalf("the service ended instead of starting: %v", cmd.ProcessState)
	case <-time.After(startLimit):
		t.Fatalf("the service was not ready within %s", startLimit)
	}
	return p
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

// metrics returns the response of a process to /metrics.
func (n *node) metrics(t *testing.T) string {
	t.Helper()
	address := ""
	for line := range strings.Lines(n.log.text()) {
		var entry struct{ Msg, Metrics string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "crier is ready" {
			address = entry.Metrics
		}
	}
	a, err := call.Do(t.Context(), fresh(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil || a.Status != http.StatusOK {
		t.Fatalf("/metrics: got %v, %v", a, err)
	}
	return a.Body
}

// hashed returns how many passwords the processes have hashed or compared in all.
func (s *instance) hashed(t *testing.T) (sum int) {
	t.Helper()
	for _, n := range s.nodes {
		found := regexp.MustCompile(`(?m)^crier_passwords_hashed_total (\S+)$`).FindStringSubmatch(n.metrics(t))
		if found == nil {
			t.Fatal("/metrics has no crier_passwords_hashed_total")
		}
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += int(value)
	}
	return sum
}

// fresh returns a client that opens a new connection for each request, because a process may have
// been restarted.
func fresh() *http.Client {
	return &http.Client{
		Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// super returns the superuser's connection to the instance's database.
func (s *instance) super(t *testing.T) *pgx.Conn {
	t.Helper()
	if s.conn != nil {
		return s.conn
	}
	s.conn = dbtest.SuperIn(t, s.database)
	return s.conn
}

// count returns the number that a query of the superuser returns.
func (s *instance) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := s.super(t).QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// letter waits for the nth mail, counted from 1, to an address with the text in its subject.
func (s *instance) letter(t *testing.T, to, subject string, nth int) (out smtptest.Received) {
	t.Helper()
	await(t, fmt.Sprintf("mail %d to %s about %q", nth, to, subject), time.Now().Add(lateLimit), func() bool {
		found := 0
		for _, m := range s.mail.Messages() {
			if m.To == to && strings.Contains(m.Subject(), subject) {
				found++
				if found == nth {
					out = m
					return true
				}
			}
		}
		return false
	}, func() string {
		var subjects []string
		for _, m := range s.mail.Messages() {
			subjects = append(subjects, m.To+" "+m.Subject())
		}
		return fmt.Sprintf("%q", subjects)
	})
	return out
}

var linkForm = regexp.MustCompile(`#(?:code|token|org)=([0-9A-Za-z]{43})`)

// link returns the token of the link in a mail.
func link(t *testing.T, m smtptest.Received) string {
	t.Helper()
	found := linkForm.FindStringSubmatch(m.Text)
	if found == nil {
		t.Fatalf("the mail %q to %s has no link:\n%s", m.Subject(), m.To, m.Text)
	}
	return found[1]
}

// device is a person's second factor.
type device struct {
	secret string
	last   int64 // the time step of the newest code
}

// code returns an unused code of the present time step, or of the next one, which is accepted too.
func (d *device) code(t *testing.T) string {
	t.Helper()
	await(t, "the step of the next code", time.Now().Add(2*time.Minute), func() bool {
		return d.last <= time.Now().Unix()/30
	}, func() string { return "no new step" })
	d.last = max(d.last+1, time.Now().Unix()/30)
	return d.at(t, d.last)
}

// at returns the code of a time step.
func (d *device) at(t *testing.T, step int64) string {
	t.Helper()
	code, err := totp.GenerateCode(d.secret, time.Unix(step*30, 0))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// wrong returns n different codes that are wrong in all time steps around now.
func (d *device) wrong(t *testing.T, n int) (out []string) {
	t.Helper()
	right, now := map[string]bool{}, time.Now().Unix()/30
	for step := now - 2; step <= now+10; step++ {
		right[d.at(t, step)] = true
	}
	for guess := 0; len(out) < n; guess++ {
		if code := fmt.Sprintf("%06d", guess); !right[code] {
			out = append(out, code)
		}
	}
	return out
}
