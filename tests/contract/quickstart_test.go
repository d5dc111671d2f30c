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

// find returns the sample of an operation in a language, changed so that it calls this service.
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

// reader follows the samples on a page in one language, in a separate organization.
type reader struct {
	org
	page     []sample
	language string
	// environment holds the variables that the reader has set, in the form NAME=value. It includes
	// the key.
	environment []string
}

// inEachLanguage runs a test of a page once per language.
func (r *rig) inEachLanguage(t *testing.T, page string, test func(t *testing.T, l *reader)) {
	t.Helper()
	samples := r.samples(t, page)
	for language := range runners {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			o := r.organization(t)
			test(t, &reader{org: o, page: samples, language: language, environment: []string{"CRIER_API_KEY=" + o.key}})
		})
	}
}

// runs runs the sample of an operation and returns its output. The error is nil if the sample exits
// with the status 0.
func (l *reader) runs(t *testing.T, operation string) (string, error) {
	t.Helper()
	return runners[l.language].alone(t, l.find(t, l.page, l.language, operation), l.environment...)
}

// step runs the sample of an operation and decodes its output.
func (l *reader) step(t *testing.T, operation string, answer any) {
	t.Helper()
	output, err := l.runs(t, operation)
	if err == nil {
		err = json.Unmarshal([]byte(output), answer)
	}
	if err != nil {
		t.Fatalf("%s: %v, want an answer:\n%s", operation, err, output)
	}
}

// sets sets variables for the following steps, each in the form NAME=value.
func (l *reader) sets(variables ...string) { l.environment = append(l.environment, variables...) }

// TestQuickStart_PublishesWithTheKeyAlone follows the steps in order. Besides the key, each step
// needs only what the step before returned.
func TestQuickStart_PublishesWithTheKeyAlone(t *testing.T) {
	t.Parallel()
	r := common(t)
	r.inEachLanguage(t, "/docs/quick-start", func(t *testing.T, l *reader) {
		c := l.channel(t, "A")
		var connected struct{ Connected bool }
		l.step(t, "is-connected", &connected)
		var channels []named
		l.step(t, "list-channels", &channels)
		if len(channels) != 1 {
			t.Fatalf("got the channels %+v, want one", channels)
		}
		l.sets("CHANNEL_ID=" + channels[0].ID)
		var first, second []created
		l.step(t, "create-posts", &first)
		l.step(t, "create-posts", &second)
		if len(first) != 1 || len(second) != 1 || first[0].PostID == second[0].PostID {
			t.Fatalf("made are %+v and %+v, want two posts", first, second)
		}
		r.publishes(t, c, 2)
		l.reaches(t, first[0].PostID, "PUBLISHED")
		l.sets("POST_ID=" + first[0].PostID)
		var post record
		l.step(t, "get-post", &post)
		if post.ID != first[0].PostID || post.State != "PUBLISHED" {
			t.Errorf("got the post %s in the state %s, want %s, PUBLISHED", post.ID, post.State, first[0].PostID)
		}
	})
}

// TestQuickStart_DraftGoesOutAtItsDate checks that the post on the page, created as a draft and
// then scheduled, waits for its date. A draft with a past date is published at once, as the page
// says.
func TestQuickStart_DraftGoesOutAtItsDate(t *testing.T) {
	t.Parallel()
	r := common(t)
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

// TestSamples_PrintReasonOfRefusal checks that a sample whose request is refused prints the
// service's reason and exits with an error.
func TestSamples_PrintReasonOfRefusal(t *testing.T) {
	t.Parallel()
	common(t).inEachLanguage(t, "/docs", func(t *testing.T, l *reader) {
		reason := l.do(t, http.MethodDelete, "/posts/"+exampleID("0b"), nil).refusal(t, http.StatusNotFound)
		output, err := l.runs(t, "delete-post")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(output, reason) {
			t.Errorf("it ends with %v and writes %q, want an error and the reason %q", err, output, reason)
		}
	})
}
