package contract

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// find returns the sample of an operation in a language, which calls the service.
func (r *rig) find(t *testing.T, page []sample, language, operation string) sample {
	t.Helper()
	i := slices.IndexFunc(page, func(s sample) bool { return s.language == language && s.operation == operation })
	if i < 0 {
		t.Fatalf("%s has no sample in %s", operation, language)
	}
	s := page[i]
	s.code = strings.ReplaceAll(s.code, base+"/public", "http://"+r.app.Addr()+"/public")
	return s
}

// TestQuickStart_PublishesWithTheKeyAlone follows the steps in their order: what a step needs besides the key is in the
// answer of the step before.
func TestQuickStart_PublishesWithTheKeyAlone(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	page := r.samples(t, "/docs/quick-start")
	for language, runner := range runners {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			o := r.organization(t)
			c := o.channel(t, "A")
			environment := []string{"CRIER_API_KEY=" + o.key}
			step := func(operation string, answer any) {
				t.Helper()
				output, err := runner.alone(t, r.find(t, page, language, operation), environment...)
				if err == nil {
					err = json.Unmarshal([]byte(output), answer)
				}
				if err != nil {
					t.Fatalf("%s: %v, want an answer:\n%s", operation, err, output)
				}
			}
			var connected struct{ Connected bool }
			step("is-connected", &connected)
			var channels []named
			step("list-channels", &channels)
			if len(channels) != 1 {
				t.Fatalf("got the channels %+v, want one", channels)
			}
			environment = append(environment, "CHANNEL_ID="+channels[0].ID)
			var first, second []created
			step("create-posts", &first)
			step("create-posts", &second)
			if len(first) != 1 || len(second) != 1 || first[0].PostID == second[0].PostID {
				t.Fatalf("made are %+v and %+v, want two posts", first, second)
			}
			r.publishes(t, c, 2)
			o.reaches(t, first[0].PostID, "PUBLISHED")
			environment = append(environment, "POST_ID="+first[0].PostID)
			var post record
			step("get-post", &post)
			if post.ID != first[0].PostID || post.State != "PUBLISHED" {
				t.Errorf("got the post %s in the state %s, want %s, PUBLISHED", post.ID, post.State, first[0].PostID)
			}
		})
	}
}

// TestQuickStart_DraftGoesOutAtItsDate: who makes the post of the page a draft and schedules it waits for its date. A
// draft whose date is past goes out at once, as on the page.
func TestQuickStart_DraftGoesOutAtItsDate(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A")
	code := r.find(t, r.samples(t, "/docs/quick-start"), "curl", "create-posts").code
	found := regexp.MustCompile(`"date": "([^"]*)"`).FindStringSubmatch(code)
	if found == nil {
		t.Fatalf("the sample has no date:\n%s", code)
	}
	draft := func(date string) (id string) {
		id = o.create(t, m{"type": "draft", "date": date, "posts": []m{entry(c.id, part(date))}})
		o.changeStatus(t, id, m{"status": "schedule"}).want(t, http.StatusOK)
		return id
	}
	shown, past := draft(found[1]), draft("2020-01-01T00:00:00Z")
	o.reaches(t, past, "PUBLISHED")
	if got := o.wantState(t, shown, "QUEUE").PublishDate; !strings.HasPrefix(got, found[1][:19]) {
		t.Errorf("the date of the scheduled draft is %s, want %s", got, found[1])
	}
}

// TestSamples_SayWhyTheyAreRefused: a sample that is refused writes the reason of the service and exits with an error.
func TestSamples_SayWhyTheyAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	page := r.samples(t, "/docs")
	for language, runner := range runners {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			o := r.organization(t)
			reason := o.do(t, http.MethodDelete, "/posts/"+exampleID("0b"), nil).refusal(t, http.StatusNotFound)
			output, err := runner.alone(t, r.find(t, page, language, "delete-post"), "CRIER_API_KEY="+o.key)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(output, reason) {
				t.Errorf("it ends with %v and writes %q, want an error and the reason %q", err, output, reason)
			}
		})
	}
}
