//go:build !race

// The library sets a process-wide logger whenever a socket is opened, which the race detector rightly reports when one process opens two.

package org_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/faultnet"
)

const loopback = "127.0.0.1:0"

// pair is two processes, and which of them every organization lives in.
func pair(t *testing.T, cfg org.Config) (first, second *org.Client, desks [2]*desk, home *atomic.Int32) {
	t.Helper()
	home, desks = &atomic.Int32{}, [2]*desk{{}, {}}
	cfg.Budget = time.Second
	both := [2]*org.Client{}
	for i := range both {
		both[i] = open(t, cfg, cluster.Config{Listen: loopback}, desks[i])
	}
	for i, c := range both {
		c.Locate(func(int16) (string, bool) {
			at := int(home.Load())
			return both[at].Address(), at == i
		})
	}
	return both[0], both[1], desks, home
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

func TestOneWindowForAllProcesses(t *testing.T) {
	t.Parallel()
	first, second, _, _ := pair(t, org.Config{Limit: 4, InFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	for i := range 6 {
		c := []*org.Client{first, second}[i%2]
		a := c.Admit(t.Context(), mine)
		if want := i < 4; a.Allowed != want || want && a.Remaining != 3-i {
			t.Fatalf("request %d: %+v", i+1, a)
		}
	}
	if first.Awake() != 1 || second.Awake() != 0 || second.Alone() != 0 {
		t.Fatalf("%d and %d actors", first.Awake(), second.Awake())
	}
}

func TestAWakeReachesTheOtherProcess(t *testing.T) {
	t.Parallel()
	first, second, desks, _ := pair(t, org.Config{Limit: 4, InFlight: 3})
	second.Wake(t.Context(), id.New[tenancy.OrgTag](), time.Now())
	eventually(t, "the wake-up comes", func() bool { return len(desks[0].seen()) > 0 })
	if len(desks[1].seen()) != 0 || first.Awake() != 1 {
		t.Fatal("it woke in the wrong process")
	}
}

func TestAnOrganizationThatMovesIsFollowed(t *testing.T) {
	t.Parallel()
	first, second, _, home := pair(t, org.Config{Limit: 100, InFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	for _, c := range []*org.Client{first, second} {
		if !c.Admit(t.Context(), mine).Allowed {
			t.Fatal("refused")
		}
	}
	home.Store(1)
	first.Evict()
	for _, c := range []*org.Client{first, second} {
		if a := c.Admit(t.Context(), mine); !a.Allowed {
			t.Fatalf("%+v", a)
		}
	}
	if second.Awake() != 1 || first.Alone() != 0 || second.Alone() != 0 {
		t.Fatalf("%d actors; %d and %d times alone", second.Awake(), first.Alone(), second.Alone())
	}
}

func TestAdmit_AProcessThatDoesNotOwnTheOrganizationRefusesNobody(t *testing.T) {
	t.Parallel()
	first, second, _, _ := pair(t, org.Config{Limit: 4, InFlight: 1})
	first.Locate(func(int16) (string, bool) { return "", false }) // it knows already that the shard has moved
	if a := second.Admit(t.Context(), id.New[tenancy.OrgTag]()); !a.Allowed || a.Remaining != 3 {
		t.Errorf("%+v", a)
	}
	if first.Awake() != 0 || second.Moved() != 2 || second.Alone() != 1 {
		t.Errorf("%d actors, asked %d times, %d times alone", first.Awake(), second.Moved(), second.Alone())
	}
}

// asleep makes the organization's actor in the first process stop, as after ten idle minutes, while the second process
// remembers it.
func asleep(t *testing.T, first, second *org.Client, home *atomic.Int32, mine tenancy.OrgID) {
	t.Helper()
	if a := second.Admit(t.Context(), mine); !a.Allowed || second.Alone() != 0 {
		t.Fatalf("%+v, %d times alone", a, second.Alone())
	}
	home.Store(1)
	first.Evict()
	home.Store(0)
	eventually(t, "the actor stops", func() bool { return first.Awake() == 0 })
}

func TestAdmit_AnActorThatSleepsInAnotherProcessIsAsked(t *testing.T) {
	t.Parallel()
	first, second, _, home := pair(t, org.Config{Limit: 4, InFlight: 1})
	mine, neighbour := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	asleep(t, first, second, home, mine)
	for i := range 6 {
		if a, want := second.Admit(t.Context(), mine), i < 4; a.Allowed != want || want && a.Remaining != 3-i {
			t.Errorf("request %d: %+v", i+1, a)
		}
	}
	for i, c := range []*org.Client{second, first, second} {
		if a := c.Admit(t.Context(), neighbour); !a.Allowed || a.Remaining != 3-i {
			t.Errorf("request %d of a neighbour: %+v", i+1, a)
		}
	}
	if first.Awake() != 2 || second.Alone() != 0 {
		t.Errorf("%d actors are awake, want 2; %d requests were admitted alone, want 0", first.Awake(), second.Alone())
	}
}

func TestWake_ReachesAnActorThatSleepsInAnotherProcess(t *testing.T) {
	t.Parallel()
	first, second, desks, home := pair(t, org.Config{Limit: 4, InFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	asleep(t, first, second, home, mine)
	second.Wake(t.Context(), mine, time.Now())
	eventually(t, "the wake-up comes", func() bool { return len(desks[0].seen()) > 0 })
}

func TestAdmit_OneActorThatHangsDoesNotMakeItsProcessSilent(t *testing.T) {
	t.Parallel()
	pool := make(stuck)
	defer close(pool)
	var both [2]*org.Client
	marked := &silences{Handler: slog.DiscardHandler}
	for i, d := range []org.Dispatcher{pool, &desk{}} {
		cfg := org.Config{Limit: 1 << 30, InFlight: 1, Budget: 250 * time.Millisecond}
		c, err := org.New(cfg, cluster.Config{Listen: loopback}, clock.System{}, slog.New(marked), d)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, c) })
		both[i] = c
	}
	for i, c := range both {
		c.Locate(func(int16) (string, bool) { return both[0].Address(), i == 0 })
	}
	near := both[1]
	hangs, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	near.Wake(t.Context(), hangs, time.Now())
	hung := make(chan org.Admission)
	go func() { hung <- near.Admit(t.Context(), hangs) }()
	for waiting := true; waiting; {
		select {
		case a := <-hung:
			if !a.Allowed || near.Unanswered() != 1 {
				t.Errorf("the one that hangs: %+v, %d unanswered, want 1", a, near.Unanswered())
			}
			waiting = false
		default:
			near.Admit(t.Context(), other)
		}
	}
	if near.Alone() != 1 || marked.count.Load() != 0 {
		t.Errorf("%d requests were admitted alone, want only that of the actor that hangs", near.Alone())
		t.Errorf("its process was marked silent %d times, want never", marked.count.Load())
	}
}

// silences counts how often a process was found silent.
type silences struct {
	slog.Handler
	count atomic.Int64
}

func (s *silences) Enabled(context.Context, slog.Level) bool { return true }

func (s *silences) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && strings.Contains(r.Message, "did not answer") {
		s.count.Add(1)
	}
	return nil
}

func (s *silences) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s *silences) WithGroup(string) slog.Handler      { return s }

func TestAProcessThatIsGoneHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	cfg := org.Config{Limit: 2, InFlight: 1, Budget: 250 * time.Millisecond}
	c := open(t, cfg, cluster.Config{Listen: loopback}, &desk{})
	c.Locate(func(int16) (string, bool) { return "127.0.0.1:1", false })
	mine := id.New[tenancy.OrgTag]()
	for i := range 3 {
		if a := c.Admit(t.Context(), mine); a.Allowed != (i < 2) {
			t.Fatalf("request %d: %+v", i+1, a)
		}
	}
	if c.Alone() != 3 {
		t.Fatal("it did not admit by itself")
	}
}

func TestASilentProcessIsNotAskedByEveryRequest(t *testing.T) {
	t.Parallel()
	p, _ := faultnet.Start(t, "")
	p.Set(faultnet.Swallow) // it accepts as a stopped process does
	cfg := org.Config{Limit: 1000, InFlight: 1, Budget: 50 * time.Millisecond}
	c := open(t, cfg, cluster.Config{Listen: loopback}, &desk{})
	c.Locate(func(int16) (string, bool) { return p.Address, false })
	for i := range 100 {
		if a := c.Admit(t.Context(), id.New[tenancy.OrgTag]()); !a.Allowed {
			t.Fatalf("request %d: %+v", i+1, a)
		}
	}
	if asked := c.Unanswered(); c.Alone() != 100 || asked == 0 || asked > 50 {
		t.Errorf("%d of 100 were admitted here, and the process was asked %d times", c.Alone(), asked)
	}
}

func TestProcessesKnowEachOtherByCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := secure(t), secure(t)
	processes := map[string]*org.Client{}
	for name, cfg := range map[string]cluster.Config{
		"home": ours, "friend": ours, "stranger": theirs, "plain": {Listen: loopback},
	} {
		processes[name] = open(t, org.Config{Limit: 9, InFlight: 1, Budget: time.Second}, cfg, &desk{})
	}
	for name, c := range processes {
		c.Locate(func(int16) (string, bool) { return processes["home"].Address(), name == "home" })
	}
	mine := id.New[tenancy.OrgTag]()
	for _, name := range []string{"stranger", "plain"} {
		if c := processes[name]; !c.Admit(t.Context(), mine).Allowed || c.Alone() != 1 || processes["home"].Awake() != 0 {
			t.Errorf("%s reached the actor", name)
		}
	}
	if c := processes["friend"]; !c.Admit(t.Context(), mine).Allowed || c.Alone() != 0 || processes["home"].Awake() != 1 {
		t.Error("a process with a certificate did not reach the actor")
	}
}

// secure returns a configuration with a new certificate for loopback, which is its own authority.
func secure(t *testing.T) cluster.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := cluster.Config{Listen: loopback, Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	cfg.CA = cfg.Cert
	for path, block := range map[string]*pem.Block{
		cfg.Cert: {Type: "CERTIFICATE", Bytes: signed}, cfg.Key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}
