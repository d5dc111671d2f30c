package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/publishing"
)

func TestPython_ConvertsTokensOutsideOfStrings(t *testing.T) {
	t.Parallel()
	const json = `{"true": true, "b": [false, null], "c": "null \"true\" false"}`
	const want = `{"true": True, "b": [False, None], "c": "null \"true\" false"}`
	if got := python(json); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestShell_QuotesTheQuote(t *testing.T) {
	t.Parallel()
	if got, want := shell("it's"), `it'\''s`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUseSchemas_FollowsReferences(t *testing.T) {
	t.Parallel()
	ref := func(name string) map[string]any { return map[string]any{"$ref": schemaPrefix + name} }
	all := map[string]any{
		"A": map[string]any{"properties": map[string]any{"b": ref("B"), "a": ref("A")}}, "B": map[string]any{"type": "string"}, "C": map[string]any{},
	}
	used := map[string]any{}
	useSchemas([]any{ref("A")}, all, used)
	if used["A"] == nil || used["B"] == nil || used["C"] != nil {
		t.Errorf("got the schemas %v, want A and B", used)
	}
}

// TestWebhooksPage_FiguresMatchConstants fails if a figure on the page differs from the constant.
func TestWebhooksPage_FiguresMatchConstants(t *testing.T) {
	t.Parallel()
	file, err := pageFiles.ReadFile("pages/webhooks.html")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(file), "")), " ")
	var waits []time.Duration
	for failed := 1; ; failed++ {
		wait, more := publishing.WebhookWait(failed, 0.5, 0)
		if !more {
			break
		}
		waits = append(waits, wait)
	}
	const hour = time.Hour
	for sentence, holds := range map[string]bool{
		"There are up to ten attempts. The intervals between them are 5 seconds, 5 and 30 minutes, and 2, 5, 10, 14, 20 and 24 hours, each plus or minus 20%.": slices.Equal(waits,
			[]time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour}),
		"Respond with 2xx within 15 seconds.":                                                          publishing.WebhookTimeout == 15*time.Second,
		"The body is at most 20,000 bytes long":                                                        publishing.MaxWebhookBody == 20_000,
		"disabled after five days without a successful delivery":                                       publishing.WebhookGiveUp == 5*24*hour,
		"For 24 hours after a rotation, the header also contains a signature with the previous secret": publishing.WebhookOverlap == 24*hour,
	} {
		if has := strings.Contains(page, sentence); !holds || !has {
			t.Errorf("the page says %q: %v, the service does so: %v, want both", sentence, has, holds)
		}
	}
}

func TestWebhookEvents_ListsEveryEvent(t *testing.T) {
	t.Parallel()
	var got []publishing.WebhookEvent
	for _, e := range webhookEvents {
		got = append(got, e.Event)
	}
	if want := publishing.WebhookEvents(); !slices.Equal(got, want) {
		t.Errorf("got the events %v, want %v", got, want)
	}
}
