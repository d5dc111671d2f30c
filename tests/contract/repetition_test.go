package contract

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// repetitions returns the effects that the idempotency page names for the second of two equal
// requests, keyed by operation id.
func (r *rig) repetitions(t *testing.T) map[string][]string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(org{rig: r}.get(t, "/docs/idempotency").want(t, http.StatusOK).Body))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for n := range root.Descendants() {
		if id := attribute(n, "data-repeated"); id != "" {
			out[id] = append(out[id], attribute(n, "data-effect"))
		}
	}
	return out
}

// attribute returns the value of an element's attribute, or "" if the element does not have it.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// TestRepetition_HasDocumentedEffect makes the example call of each operation on the page twice.
// Every operation that changes something must be on it.
func TestRepetition_HasDocumentedEffect(t *testing.T) {
	t.Parallel()
	r, receiver := startExamples(t)
	page := r.repetitions(t)
	_, all := publicOperations(t, r)
	w := r.exampleWorld(t, receiver)
	for _, op := range all {
		effects := page[op.ID]
		if len(effects) == 0 {
			if op.method != http.MethodGet {
				t.Errorf("the page does not say what a second %s does", op.ID)
			}
			continue
		}
		t.Run(op.ID, func(t *testing.T) {
			if op.ID == "replay-delivery" {
				w.replays(t, op, 2)
				return
			}
			status, _ := op.success()
			first := op.unkeyed().call(t, w).want(t, status)
			second := op.unkeyed().call(t, w)
			switch {
			case slices.Contains(effects, "same"):
				second.want(t, status)
				if a, b := lasting(t, first), lasting(t, second); a != b {
					t.Errorf("the second answer is %s, want %s", b, a)
				}
			case slices.Contains(effects, "refused"):
				if second.Status != http.StatusNotFound && second.Status != http.StatusConflict {
					t.Errorf("the second answer is %v, want 404 or 409", second)
				}
			default:
				second.want(t, status)
				if op.ID != "trigger-tool" && first.Body == second.Body {
					t.Errorf("both answers are %s, want two things", first.Body)
				}
			}
		})
	}
}

// replays makes the example call of a replay n times, and waits each time until the receiver has
// got the delivery once more.
func (w exampleWorld) replays(t *testing.T, op documented, n int) {
	t.Helper()
	id := w.real[exampleID("10")]
	var got delivery
	look := func() delivery {
		all := read[[]delivery](t, w.get(t, "/webhooks/"+w.real[exampleID("0f")]+"/deliveries").want(t, http.StatusOK))
		if i := slices.IndexFunc(all, func(d delivery) bool { return d.ID == id }); i >= 0 {
			return all[i]
		}
		t.Fatalf("there is no delivery %s in %+v", id, all)
		return delivery{}
	}
	before := look().Attempts
	for i := 1; i <= n; i++ {
		op.call(t, w).want(t, http.StatusCreated)
		eventually(t, "the replay", func() bool {
			got = look()
			return got.State == "delivered" && got.Attempts > before+i-1
		}, func() any { return got })
		if got.Attempts != before+i {
			t.Errorf("after %d replays the delivery has %d attempts, want %d", i, got.Attempts, before+i)
		}
	}
}

// unkeyed returns the operation without the idempotency key in its example.
func (op documented) unkeyed() documented {
	op.Parameters = slices.Clone(op.Parameters)
	for i, p := range op.Parameters {
		if p.In == "header" {
			op.Parameters[i].Example = nil
		}
	}
	return op
}

// lasting returns the body of a response without the date of the last change.
func lasting(t *testing.T, a answer) string {
	t.Helper()
	value := read[any](t, a)
	if object, ok := value.(map[string]any); ok {
		delete(object, "updatedAt")
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestRepetition_RepublishPublishesAgain checks that a repeated change of the status with republish
// publishes the post again, as the idempotency page warns. The release id shows that each request
// was carried out.
func TestRepetition_RepublishPublishesAgain(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c := o.channel(t, "A")
	id := o.create(t, request("now", time.Now(), entry(c.id, part("once more", o.stored(t, "a.png", png(t))))))
	releases := []string{o.reaches(t, id, "PUBLISHED").ReleaseID}
	for n := 2; n <= 3; n++ {
		o.changeStatus(t, id, m{"status": "schedule", "republish": true}).want(t, http.StatusOK)
		r.publishes(t, c, n)
		release := o.reaches(t, id, "PUBLISHED").ReleaseID
		if slices.Contains(releases, release) {
			t.Fatalf("the release id of publication %d is %s, want one unlike %v", n, release, releases)
		}
		releases = append(releases, release)
	}
	if got := r.repetitions(t)["change-status"]; !slices.Contains(got, "again") {
		t.Errorf("the page says of a second change of the status %v, want a warning", got)
	}
	r.fault(t, c, "processing", nil, m{"polls": 1, "then": "failed"})
	before := len(o.post(t, id).events())
	o.changeStatus(t, id, m{"status": "schedule", "republish": true}).want(t, http.StatusOK)
	o.reaches(t, id, "ERROR")
	if after := o.post(t, id).events()[before:]; !slices.Contains(after, "scheduled") {
		t.Errorf("the timeline has %v after a request whose post failed, want scheduled", after)
	}
}
