//go:build !race

// protoactor sets a process-wide logger whenever it opens a socket, which is a data race if one
// process opens two.

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

// openTwo returns two clients, each with a host. home is the index of the client that owns every
// shard.
func openTwo(t *testing.T, cfg org.Config) (first, second *org.Client, recorders [2]*offerRecorder, home *atomic.Int32) {
	t.Helper()
	home, recorders = &atomic.Int32{}, [2]*offerRecorder{{}, {}}
	cfg.Timeout = time.Second
	both := [2]*org.Client{}
	for i := range both {
		both[i] = openPlaced(t, cfg, cluster.Config{Listen: loopback}, recorders[i], func(int16) (string, bool) {
			at := int(home.Load())
			return both[at].Address(), at == i
		})
	}
	return both[0], both[1], recorders, home
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func TestAdmit_OneWindowForAllProcesses(t *testing.T) {
	t.Parallel()
	first, second, _, _ := openTwo(t, org.Config{Limit: 4, MaxInFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	for i := range 6 {
		c := []*org.Client{first, second}[i%2]
		a := c.Admit(t.Context(), mine)
		if want := i < 4; a.Allowed != want || want && a.Remaining != 3-i {
			t.Fatalf("request %d: got %+v", i+1, a)
		}
	}
	if first.ActorCount() != 1 || second.ActorCount() != 0 || second.LocalAdmissions() != 0 {
		t.Fatalf("got %d and %d actors, want 1 and 0; %d local admissions, want 0",
			first.ActorCount(), second.ActorCount(), second.LocalAdmissions())
	}
}

func TestWake_StartsActorInOtherProcess(t *testing.T) {
	t.Parallel()
	first, second, recorders, _ := openTwo(t, org.Config{Limit: 4, MaxInFlight: 3})
	second.Wake(t.Context(), id.New[tenancy.OrgTag](), time.Now())
	eventually(t, "the actor makes an offer", func() bool { return len(recorders[0].seen()) > 0 })
	if len(recorders[1].seen()) != 0 || first.ActorCount() != 1 {
		t.Fatalf("got %d actors in the owner, want 1; %d offers in the other process, want 0",
			first.ActorCount(), len(recorders[1].seen()))
	}
}

func TestAdmit_FollowsMovedOrganization(t *testing.T) {
	t.Parallel()
	first, second, _, home := openTwo(t, org.Config{Limit: 100, MaxInFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	for _, c := range []*org.Client{first, second} {
		if !c.Admit(t.Context(), mine).Allowed {
			t.Fatal("got a refusal, want an admission")
		}
	}
	home.Store(1)
	first.Evict()
	for _, c := range []*org.Client{first, second} {
		if a := c.Admit(t.Context(), mine); !a.Allowed {
			t.Fatalf("got %+v, want an admission", a)
		}
	}
	if second.ActorCount() != 1 || first.LocalAdmissions() != 0 || second.LocalAdmissions() != 0 {
		t.Fatalf("got %d actors in the new owner and %d and %d local admissions, want 1, 0 and 0",
			second.ActorCount(), first.LocalAdmissions(), second.LocalAdmissions())
	}
}

func TestAdmit_WrongOwnerFallsBackToLocalWindow(t *testing.T) {
	t.Parallel()
	cfg, net := org.Config{Limit: 4, MaxInFlight: 1, Timeout: time.Second}, cluster.Config{Listen: loopback}
	moved := func(int16) (string, bool) { return "", false }
	first := openPlaced(t, cfg, net, &offerRecorder{}, moved)
	outdated := func(int16) (string, bool) { return first.Address(), false }
	second := openPlaced(t, cfg, net, &offerRecorder{}, outdated)
	if a := second.Admit(t.Context(), id.New[tenancy.OrgTag]()); !a.Allowed || a.Remaining != 3 {
		t.Errorf("got %+v, want an admission", a)
	}
	if first.ActorCount() != 0 || second.Moved() != 2 || second.LocalAdmissions() != 1 {
		t.Errorf("got %d actors, %d moved and %d local admissions, want 0, 2 and 1",
			first.ActorCount(), second.Moved(), second.LocalAdmissions())
	}
}

// putToSleep starts the organization's actor in the first process through a request of the second,
// and makes it stop as if after ten idle minutes.
func putToSleep(t *testing.T, first, second *org.Client, home *atomic.Int32, mine tenancy.OrgID) {
	t.Helper()
	if a := second.Admit(t.Context(), mine); !a.Allowed || second.LocalAdmissions() != 0 {
		t.Fatalf("got %+v and %d local admissions, want an admission by the actor", a, second.LocalAdmissions())
	}
	home.Store(1)
	first.Evict()
	home.Store(0)
	eventually(t, "the actor stops", func() bool { return first.ActorCount() == 0 })
}

func TestAdmit_StartsIdleActorInOtherProcess(t *testing.T) {
	t.Parallel()
	first, second, _, home := openTwo(t, org.Config{Limit: 4, MaxInFlight: 1})
	mine, neighbour := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	putToSleep(t, first, second, home, mine)
	for i := range 6 {
		if a, want := second.Admit(t.Context(), mine), i < 4; a.Allowed != want || want && a.Remaining != 3-i {
			t.Errorf("request %d: got %+v", i+1, a)
		}
	}
	for i, c := range []*org.Client{second, first, second} {
		if a := c.Admit(t.Context(), neighbour); !a.Allowed || a.Remaining != 3-i {
			t.Errorf("request %d of another organization: got %+v, want an admission with %d left", i+1, a, 3-i)
		}
	}
	if first.ActorCount() != 2 || second.LocalAdmissions() != 0 {
		t.Errorf("got %d actors and %d local admissions, want 2 and 0", first.ActorCount(), second.LocalAdmissions())
	}
}

func TestWake_StartsIdleActorInOtherProcess(t *testing.T) {
	t.Parallel()
	first, second, recorders, home := openTwo(t, org.Config{Limit: 4, MaxInFlight: 1})
	mine := id.New[tenancy.OrgTag]()
	putToSleep(t, first, second, home, mine)
	second.Wake(t.Context(), mine, time.Now())
	eventually(t, "the actor makes an offer", func() bool { return len(recorders[0].seen()) > 0 })
}

func TestAdmit_HangingActorDoesNotMarkItsProcessSilent(t *testing.T) {
	t.Parallel()
	pool := make(blockedPool)
	defer close(pool)
	var both [2]*org.Client
	marked := &silentWarnings{Handler: slog.DiscardHandler}
	for i, offers := range []org.OfferQueue{pool, &offerRecorder{}} {
		cfg := org.Config{Limit: 1 << 30, MaxInFlight: 1, Timeout: 250 * time.Millisecond}
		place := func(int16) (string, bool) { return both[0].Address(), i == 0 }
		deps := org.Deps{Offers: offers, Place: place, Clock: clock.System{}, Log: slog.New(marked)}
		c, err := org.New(cfg, cluster.Config{Listen: loopback}, deps)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, c) })
		both[i] = c
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
				t.Errorf("the actor that hangs: got %+v and %d unanswered, want an admission and 1", a, near.Unanswered())
			}
			waiting = false
		default:
			near.Admit(t.Context(), other)
		}
	}
	if near.LocalAdmissions() != 1 || marked.count.Load() != 0 {
		t.Errorf("got %d local admissions, want only the one of the actor that hangs", near.LocalAdmissions())
		t.Errorf("got its process marked silent %d times, want never", marked.count.Load())
	}
}

// silentWarnings is a log handler that counts the warnings about actors that did not respond.
type silentWarnings struct {
	slog.Handler
	count atomic.Int64
}

func (s *silentWarnings) Enabled(context.Context, slog.Level) bool { return true }

func (s *silentWarnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && strings.Contains(r.Message, "did not respond") {
		s.count.Add(1)
	}
	return nil
}

func (s *silentWarnings) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *silentWarnings) WithGroup(string) slog.Handler { return s }

func TestAdmit_DeadProcessFallsBackToLocalWindow(t *testing.T) {
	t.Parallel()
	cfg := org.Config{Limit: 2, MaxInFlight: 1, Timeout: 250 * time.Millisecond}
	dead := func(int16) (string, bool) { return "127.0.0.1:1", false }
	c := openPlaced(t, cfg, cluster.Config{Listen: loopback}, &offerRecorder{}, dead)
	mine := id.New[tenancy.OrgTag]()
	for i := range 3 {
		if a := c.Admit(t.Context(), mine); a.Allowed != (i < 2) {
			t.Fatalf("request %d: got %+v", i+1, a)
		}
	}
	if c.LocalAdmissions() != 3 {
		t.Fatalf("got %d local admissions, want 3", c.LocalAdmissions())
	}
}

func TestAdmit_SilentProcessIsNotAskedEveryTime(t *testing.T) {
	t.Parallel()
	p, _ := faultnet.Start(t, "")
	p.Set(faultnet.Swallow) // accepts connections, as a stopped process does
	cfg := org.Config{Limit: 1000, MaxInFlight: 1, Timeout: 50 * time.Millisecond}
	silent := func(int16) (string, bool) { return p.Address, false }
	c := openPlaced(t, cfg, cluster.Config{Listen: loopback}, &offerRecorder{}, silent)
	for i := range 100 {
		if a := c.Admit(t.Context(), id.New[tenancy.OrgTag]()); !a.Allowed {
			t.Fatalf("request %d: got %+v", i+1, a)
		}
	}
	if asked := c.Unanswered(); c.LocalAdmissions() != 100 || asked == 0 || asked > 50 {
		t.Errorf("got %d local admissions and %d unanswered requests, want 100 and 1 to 50", c.LocalAdmissions(), asked)
	}
}

func TestHost_RequiresCertificateOfSameAuthority(t *testing.T) {
	t.Parallel()
	ours, theirs := secure(t), secure(t)
	processes := map[string]*org.Client{}
	for name, cfg := range map[string]cluster.Config{
		"home": ours, "member": ours, "foreign": theirs, "plain": {Listen: loopback},
	} {
		place := func(int16) (string, bool) { return processes["home"].Address(), name == "home" }
		limits := org.Config{Limit: 9, MaxInFlight: 1, Timeout: time.Second}
		processes[name] = openPlaced(t, limits, cfg, &offerRecorder{}, place)
	}
	mine := id.New[tenancy.OrgTag]()
	for _, name := range []string{"foreign", "plain"} {
		if c := processes[name]; !c.Admit(t.Context(), mine).Allowed || c.LocalAdmissions() != 1 || processes["home"].ActorCount() != 0 {
			t.Errorf("%s: got an answer of the actor, want a local admission", name)
		}
	}
	if c := processes["member"]; !c.Admit(t.Context(), mine).Allowed || c.LocalAdmissions() != 0 || processes["home"].ActorCount() != 1 {
		t.Error("a process with a certificate: got a local admission, want an answer of the actor")
	}
}

// secure returns a configuration with a new self-signed certificate for loopback.
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
