package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"crier/tests/call"
	"crier/tests/faultnet"
	"crier/tests/sandboxtest"
)

// cluster is a set of processes behind a load balancer.
type cluster struct {
	balancer *faultnet.Balancer
	mu       sync.Mutex // protects the processes of the nodes
	nodes    []*service
}

func startCluster(t *testing.T, a account, size int) *cluster {
	t.Helper()
	settings := maps.Clone(a.service())
	maps.Copy(settings, map[string]string{
		"CLUSTER_LISTEN": "127.0.0.1:0", "FILES_DIR": t.TempDir(),
		"LEASE_TTL": "3s", "HEARTBEAT_INTERVAL": "500ms", "DRAIN_DELAY": "1s", "PLATFORM_TIMEOUT": "10s",
	})
	first := start(t, settings)
	g := &cluster{nodes: []*service{first}}
	for range size - 1 {
		next := &service{database: first.database, log: &record{}, key: first.key, session: first.session, settings: maps.Clone(first.settings)}
		next.settings["CRIER_HOME"] = t.TempDir()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the log of another process:\n%s", next.log)
			}
		})
		next.restart(t)
		g.nodes = append(g.nodes, next)
	}
	g.balancer = faultnet.Balance(t.Context(), g.addresses)
	return g
}

// tenant is one organization with one channel.
type tenant struct {
	account
	key, channel string
	mu           sync.Mutex
	booked       map[string]string // the ids of the posts, by text
}

// createTenants creates n organizations with one channel each.
func (g *cluster) createTenants(t *testing.T, sandbox string, n int) (all []*tenant) {
	t.Helper()
	for i := range n {
		s := *g.nodes[0]
		mail := fmt.Sprintf("owner-%d@crier.test", i)
		s.organize(t, mail)
		s.login(t, mail)
		a := newSandbox(sandbox, "C")
		connector, form := a.form()
		all = append(all, &tenant{account: a, key: s.key, channel: s.connect(t, connector, form), booked: map[string]string{}})
	}
	return all
}

// book schedules a post through the balancer, without retries.
func (o *tenant) book(client *http.Client, text string, due time.Time) error {
	body := fmt.Sprintf(`{"type":"schedule","date":%q,"posts":[{"integration":{"id":%q},"value":[{"content":%q}]}]}`, due.UTC().Format(time.RFC3339Nano), o.channel, text)
	var made []struct{ PostID string }
	if err := o.ask(client, http.MethodPost, "/posts", body, &made); err != nil {
		return fmt.Errorf("book: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.booked[text] = made[0].PostID
	return nil
}

// ask sends a request to the process that the client's balancer chooses.
func (o *tenant) ask(client *http.Client, method, path string, body, out any) error {
	a, err := call.Do(context.Background(), client, method, "http://crier.test/public/v1"+path, body, "Authorization", o.key)
	if err != nil {
		return err
	}
	return a.Into(out)
}

// missing returns the texts that were booked but not published. It ends the test if a post was
// published twice.
func (o *tenant) missing(t *testing.T) (missing []string) {
	t.Helper()
	out := map[string]int{}
	for _, p := range o.posts(t) {
		out[p.text]++
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for text := range o.booked {
		switch out[text] {
		case 0:
			missing = append(missing, text)
		case 1:
		default:
			t.Fatalf("got %q published %d times, want once", text, out[text])
		}
	}
	return missing
}

// load books posts and reads continuously until stop is called. It sends each request once. stop
// returns the number of requests and their errors.
func load(b *faultnet.Balancer, tenants []*tenant) (stop func() (int, []error)) {
	var answered atomic.Int64
	var mu sync.Mutex
	var wrong []error
	note := func(err error) {
		answered.Add(1)
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			wrong = append(wrong, err)
		}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	for i, o := range tenants {
		running.Go(func() {
			client := &http.Client{Transport: &http.Transport{DialContext: b.Dial}, Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(30 * time.Millisecond):
				}
				if n%5 == 0 {
					note(o.book(client, fmt.Sprintf("post %d of %d", n, i), time.Now().Add(time.Duration(n%3)*time.Second)))
					continue
				}
				note(o.ask(client, http.MethodGet, "/is-connected", nil, nil))
			}
		})
	}
	return func() (int, []error) {
		close(done)
		running.Wait()
		return int(answered.Load()), wrong
	}
}

func TestCluster_RollingRestartFailsNoRequest(t *testing.T) {
	t.Parallel()
	sandbox := sandboxtest.Start(t)
	g := startCluster(t, newSandbox(sandbox, "C"), 3)
	tenants := g.createTenants(t, sandbox, 6)
	stop := load(g.balancer, tenants)
	for _, n := range g.nodes {
		n.terminate(t)
		g.replace(t, n)
	}
	answered, wrong := stop()
	if len(wrong) > 0 || answered < 50 {
		t.Errorf("got %d errors in %d requests, want none in at least 50: %v", len(wrong), answered, wrong)
	}
	awaitAllPublished(t, tenants)
	for _, o := range tenants {
		for text, id := range o.booked {
			if p := o.read(t, g, id); p.State != "PUBLISHED" {
				t.Errorf("%s: got %s, want it published", text, p)
			}
		}
	}
}

func TestCluster_PublishesPostsOfKilledAndStoppedProcess(t *testing.T) {
	t.Parallel()
	sandbox := sandboxtest.Start(t)
	g := startCluster(t, newSandbox(sandbox, "C"), 3)
	tenants := g.createTenants(t, sandbox, 6)
	client := &http.Client{Transport: &http.Transport{DialContext: g.balancer.Dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for i, o := range tenants {
		for n := range 5 {
			if err := o.book(client, fmt.Sprintf("post %d of %d", n, i), time.Now().Add(time.Duration(n)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.nodes[0].kill()
	stopped := g.nodes[1]
	if err := syscall.Kill(-stopped.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Eight seconds are longer than the process's lease.
	time.AfterFunc(8*time.Second, func() { _ = syscall.Kill(-stopped.cmd.Process.Pid, syscall.SIGCONT) })
	awaitAllPublished(t, tenants)
}

func awaitAllPublished(t *testing.T, tenants []*tenant) {
	t.Helper()
	for _, o := range tenants {
		var missing []string
		await(t, "every post", time.Now().Add(2*patience), func() bool {
			missing = o.missing(t)
			return len(missing) == 0
		}, func() string { return fmt.Sprint("no ", missing) })
	}
}

func (o *tenant) read(t *testing.T, g *cluster, id string) (p post) {
	t.Helper()
	s := *g.nodes[0]
	s.key = o.key
	return s.read(t, id)
}

// terminate stops the process with SIGTERM and checks its exit code.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
}

// addresses returns the addresses of the running processes.
func (g *cluster) addresses() (out []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.nodes {
		if n.process != nil {
			out = append(out, n.address)
		}
	}
	return out
}

// replace starts a new process for a node whose process has ended.
func (g *cluster) replace(t *testing.T, n *service) {
	t.Helper()
	fresh := launch(t, n.settings, n.log)
	g.mu.Lock()
	defer g.mu.Unlock()
	n.process = fresh
}
