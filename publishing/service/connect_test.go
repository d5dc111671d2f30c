package service_test

import (
	"context"
	"encoding/base64"
	"strings"
	"sync/atomic"
	"testing"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/connector"
	publishingservice "crier/publishing/service"
)

// door is a platform that counts the credentials that it is asked for, and takes one.
type door struct {
	*platform
	asked atomic.Int32
}

func (d *door) Describe() connector.Descriptor {
	out := d.platform.Describe()
	out.Fields = []connector.Field{{Key: "password", Label: "Password", Type: "password", Validation: ".+"}}
	return out
}

func (d *door) Connect(_ context.Context, _ connector.Env, fields map[string]string) (connector.Connected, error) {
	d.asked.Add(1)
	if fields["password"] != "right" {
		return connector.Connected{}, &connector.Error{Kind: connector.KindReauth, Public: "The password is wrong."}
	}
	return connector.Connected{Account: connector.Account{ID: "account", Name: "A", Grade: publishing.GradeC}, Credential: []byte(`{}`)}, nil
}

// connecting is a connect that m has begun at the door; try finishes it with a password, or with a code that is no form.
func connecting(t *testing.T) (d *door, try func(password string) error) {
	t.Helper()
	r := newRig(t)
	d = &door{platform: r.platform}
	r.register(d)
	return d, r.organization().begin(limits)
}

// begin begins a connect under the settings; finish finishes it with a password, or with a code that is no form.
func (m member) begin(cfg publishingservice.Config) (finish func(password string) error) {
	m.Helper()
	channels := publishingservice.NewChannels(cfg, m.deps)
	state, err := channels.Begin(m.Context(), m.who, publishing.BeginConnect{Connector: "sandbox"})
	m.ok(err)
	return func(password string) error {
		code := base64.StdEncoding.EncodeToString([]byte(`{"password":"` + password + `"}`))
		_, err := channels.Finish(m.Context(), publishing.FinishConnect{Connector: "sandbox", State: state, Code: code, Timezone: "0"})
		return err
	}
}

func TestFinishConnect_EndsAfterTenTries(t *testing.T) {
	t.Parallel()
	d, try := connecting(t)
	for range 10 {
		if err := try("wrong"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "password is wrong") {
			t.Fatalf("a wrong password: %v", err)
		}
	}
	for _, password := range []string{"wrong", "right"} {
		if err := try(password); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "begin again") {
			t.Errorf("after ten tries, with a %s password: %v, want begin again", password, err)
		}
	}
	if n := d.asked.Load(); n != 10 {
		t.Errorf("the platform was asked %d times, want 10", n)
	}
}

func TestFinishConnect_TakesTheTenthTry(t *testing.T) {
	t.Parallel()
	d, try := connecting(t)
	for range 20 { // it never reaches the platform
		if err := try(`"`); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "base64") {
			t.Fatalf("a form that is not JSON: %v", err)
		}
	}
	for range 9 {
		if err := try("wrong"); err == nil {
			t.Fatal("a wrong password connects")
		}
	}
	if err := try("right"); err != nil {
		t.Errorf("the tenth try: %v", err)
	}
	if err := try("right"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "begin again") {
		t.Errorf("the same again: %v", err)
	}
	if n := d.asked.Load(); n != 10 {
		t.Errorf("the platform was asked %d times, want 10", n)
	}
}

func TestFinishConnect_RefusesTooManyChannels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.register(&door{platform: r.platform})
	m := r.organization() // it has a channel
	cfg := limits
	cfg.MaxChannels = 1
	if err := m.begin(cfg)("right"); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "limit of channels, which is 1") {
		t.Errorf("one more channel than the limit: %v, want a conflict", err)
	}
	cfg.MaxChannels = 2
	for _, what := range []string{"as many channels as the limit", "the same account again"} {
		if err := m.begin(cfg)("right"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
