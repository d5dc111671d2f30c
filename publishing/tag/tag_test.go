package tag_test

import (
	"fmt"
	"testing"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/tag"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// rig provides the use cases of tags for one organization.
type rig struct {
	*publishtest.Base
	tags *tag.Tags
	who  tenancy.Principal
}

func newRig(t *testing.T) *rig {
	t.Helper()
	b := publishtest.New(t)
	return &rig{Base: b, tags: tag.New(b.Store), who: b.Organization()}
}

func (r *rig) create(name string) publishing.Tag {
	r.Helper()
	out, err := r.tags.Create(r.Context(), r.who, publishing.SaveTag{Name: name, Color: "#1F6FEB"})
	r.OK(err)
	return out
}

func (r *rig) names() (out []string) {
	r.Helper()
	tags, err := r.tags.List(r.Context(), r.who)
	r.OK(err)
	for _, t := range tags {
		out = append(out, t.Name)
	}
	return out
}

func TestTags_AreListedByName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.create("beta")
	r.create("Alpha")
	if b.Color != "#1f6feb" {
		t.Errorf("the color is %s, want it in lower case", b.Color)
	}
	if got := fmt.Sprint(r.names()); got != "[Alpha beta]" {
		t.Errorf("got the tags %s, want [Alpha beta]", got)
	}
	changed, err := r.tags.Update(t.Context(), r.who, b.ID.String(), publishing.SaveTag{Name: "BETA", Color: "#000000"})
	r.OK(err)
	if changed.Name != "BETA" || changed.Color != "#000000" {
		t.Errorf("the changed tag is %+v", changed)
	}
	deleted, err := r.tags.Delete(t.Context(), r.who, b.ID.String())
	r.OK(err)
	if deleted.ID != b.ID || fmt.Sprint(r.names()) != "[Alpha]" {
		t.Errorf("deleted %+v and left %v, want [Alpha]", deleted, r.names())
	}
}

// A tag that an agent may not change can stand on posts that the agent may not see.
func TestTags_AreKeptFromAgentsWithLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tag := r.create("shared")
	agent := r.who
	agent.Via = tenancy.ViaAgent
	agent.Agent = tenancy.Agent{ID: id.New[tenancy.AgentTag](), Write: true, Limits: &tenancy.AgentLimits{MustAsk: true}}
	if _, err := r.tags.Update(t.Context(), agent, tag.ID.String(), publishing.SaveTag{Name: "theirs", Color: "#000000"}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("update: got %v, want Forbidden", err)
	}
	if _, err := r.tags.Delete(t.Context(), agent, tag.ID.String()); !fault.Is(err, fault.Forbidden) {
		t.Errorf("delete: got %v, want Forbidden", err)
	}
	if _, err := r.tags.Create(t.Context(), agent, publishing.SaveTag{Name: "new", Color: "#000000"}); err != nil {
		t.Errorf("create: got %v, want nil", err)
	}
	if got := fmt.Sprint(r.names()); got != "[new shared]" {
		t.Errorf("got the tags %s, want [new shared]", got)
	}
}

func TestTags_AreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := r.create("first"), r.create("second")
	stranger := r.Organization()
	save := publishing.SaveTag{Name: "third", Color: "#000000"}
	taken := publishing.SaveTag{Name: "FIRST", Color: "#000000"}
	for name, c := range map[string]struct {
		do   func() error
		kind fault.Kind
	}{
		"a taken name": {kind: fault.Conflict, do: func() error {
			_, err := r.tags.Create(t.Context(), r.who, taken)
			return err
		}},
		"a change to a taken name": {kind: fault.Conflict, do: func() error {
			_, err := r.tags.Update(t.Context(), r.who, second.ID.String(), taken)
			return err
		}},
		"a color that is a word": {kind: fault.Invalid, do: func() error {
			_, err := r.tags.Create(t.Context(), r.who, publishing.SaveTag{Name: "x", Color: "red"})
			return err
		}},
		"no name": {kind: fault.Invalid, do: func() error {
			_, err := r.tags.Update(t.Context(), r.who, first.ID.String(), publishing.SaveTag{Color: "#000000"})
			return err
		}},
		"a change by another organization": {kind: fault.NotFound, do: func() error {
			_, err := r.tags.Update(t.Context(), stranger, first.ID.String(), save)
			return err
		}},
		"a deletion by another organization": {kind: fault.NotFound, do: func() error {
			_, err := r.tags.Delete(t.Context(), stranger, first.ID.String())
			return err
		}},
		"an id that names nothing": {kind: fault.NotFound, do: func() error {
			_, err := r.tags.Delete(t.Context(), r.who, id.New[publishing.TagTag]().String())
			return err
		}},
		"an id that is none": {kind: fault.NotFound, do: func() error {
			_, err := r.tags.Update(t.Context(), r.who, "first", save)
			return err
		}},
	} {
		if err := c.do(); !fault.Is(err, c.kind) {
			t.Errorf("%s: got the error %v, want %v", name, err, c.kind)
		}
	}
	if got := fmt.Sprint(r.names()); got != "[first second]" {
		t.Errorf("the tags are %s, want them as they were", got)
	}
}

func TestTags_HaveALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Tenant(r.who.Org, `insert into tag (org_id, id, name, color)
select $1, gen_random_uuid(), 'tag ' || n, '#000000' from generate_series(1, $2) n`, r.who.Org, publishing.MaxTags-1)
	last := r.create("last")
	save := publishing.SaveTag{Name: "one more", Color: "#000000"}
	if _, err := r.tags.Create(t.Context(), r.who, save); !fault.Is(err, fault.Conflict) {
		t.Errorf("one tag more than an organization may have: got the error %v, want Conflict", err)
	}
	_, err := r.tags.Delete(t.Context(), r.who, last.ID.String())
	r.OK(err)
	r.create("one more")
}
