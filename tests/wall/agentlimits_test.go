package wall

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"testing"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// TestAgents_LeaveWebhooksAndConnectionsAlone asks the use cases themselves: the edge refuses
// agents as well.
func TestAgents_LeaveWebhooksAndConnectionsAlone(t *testing.T) {
	t.Parallel()
	r := newNarrowRig(t)
	ctx, agent := t.Context(), r.who
	agent.Via, agent.Agent = tenancy.ViaAgent, tenancy.Agent{ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag](), Write: true}
	hooks, apps := r.Deps.Webhooks(publishtest.Limits), r.Deps.Apps()
	channel, hook := r.visible.channel.String(), id.New[publishing.WebhookTag]().String()
	for name, ask := range map[string]func() error{
		"begin a connect": func() error {
			_, err := r.channels.Begin(ctx, agent, publishing.BeginConnect{Connector: "sandbox"})
			return err
		},
		"choose an account": func() error {
			_, err := r.channels.Choose(ctx, agent, publishing.ChooseAccount{Channel: channel})
			return err
		},
		"disconnect":         func() error { return r.channels.Disconnect(ctx, agent, channel) },
		"set credentials":    func() error { _, _, err := apps.SetApp(ctx, agent, publishing.SetPlatformApp{Family: "x"}); return err },
		"delete credentials": func() error { _, _, err := apps.DeleteApp(ctx, agent, "x"); return err },
		"list webhooks":      func() error { _, err := hooks.List(ctx, agent); return err },
		"create a webhook":   func() error { _, _, err := hooks.Create(ctx, agent, publishing.SetWebhook{}); return err },
		"update a webhook":   func() error { _, err := hooks.Update(ctx, agent, hook, publishing.SetWebhook{}); return err },
		"delete a webhook":   func() error { _, err := hooks.Delete(ctx, agent, hook); return err },
		"rotate a secret":    func() error { _, _, err := hooks.RotateSecret(ctx, agent, hook, nil); return err },
		"list deliveries":    func() error { _, err := hooks.Deliveries(ctx, agent, hook, publishing.ListDeliveries{}); return err },
		"replay a delivery":  func() error { return hooks.Replay(ctx, agent, hook, hook) },
		"test a webhook":     func() error { _, err := hooks.Test(ctx, agent, hook); return err },
		"try an address":     func() error { _, _, err := hooks.TryURL(ctx, agent, "https://example.com", nil); return err },
	} {
		if err := ask(); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: got %v, want Forbidden", name, err)
		}
	}
}

// picture returns an encoded picture.
func picture(t *testing.T) io.Reader {
	t.Helper()
	var out bytes.Buffer
	must(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, 8, 8))))
	return &out
}

// revoked is an Authority that confirms nobody.
type revoked struct{}

func (revoked) Confirm(context.Context, pg.Querier, tenancy.Principal) error {
	return fault.New(fault.Unauthenticated, "wall.Confirm", "The grant was revoked.")
}

// TestAgents_RevokedGrantStoresNoFile: keys store files without being confirmed.
func TestAgents_RevokedGrantStoresNoFile(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	who := r.Organization()
	agent := who
	agent.Via, agent.Agent = tenancy.ViaAgent, tenancy.Agent{ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag]()}
	media := r.Deps.Media(publishtest.Limits)
	upload := func(p tenancy.Principal) error {
		_, err := media.Upload(t.Context(), p, "picture.png", picture(t))
		return err
	}
	must(t, upload(agent))
	r.Store.Authority = revoked{}
	if err := upload(agent); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("got %v, want Unauthenticated", err)
	}
	who.Via = tenancy.ViaKey
	must(t, upload(who))
	page, err := media.List(t.Context(), who, publishing.ListMedia{Page: 1})
	must(t, err)
	if len(page.Media) != 2 {
		t.Errorf("%d files are stored, want those of the agent before and of the key", len(page.Media))
	}
}
