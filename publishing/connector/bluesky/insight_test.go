package bluesky_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/conformance"
	"crier/tests/pds"
)

// statistics creates two fans of the first account. Both follow and like, and one of them also
// reposts, replies and quotes.
func (w *rig) statistics(t *testing.T) {
	now := w.session.Clock.Now()
	at := now.Format("2006-01-02T15:04:05.000Z")
	ref, err := conformance.Publish(t.Context(), bluesky.New(), w.session, w.item("to be counted"))
	if err != nil {
		t.Fatal(err)
	}
	cid := w.cid(t, ref.ID)
	subject := map[string]any{"uri": ref.ID, "cid": cid}
	for i, name := range []string{"fan-one", "fan-two"} {
		fan := w.server.CreateAccount(t, name+".test", "fan-fan-fan-fan")
		put := func(collection string, record map[string]any) {
			record["$type"], record["createdAt"] = collection, at
			w.server.Put(t, fan, collection, record)
		}
		put("app.bsky.graph.follow", map[string]any{"subject": w.account.DID})
		put("app.bsky.feed.like", map[string]any{"subject": subject})
		if i > 0 {
			continue
		}
		put("app.bsky.feed.repost", map[string]any{"subject": subject})
		put("app.bsky.feed.post", map[string]any{"text": "Yes!", "reply": map[string]any{"root": subject, "parent": subject}})
		put("app.bsky.feed.post", map[string]any{"text": "See:", "embed": map[string]any{"$type": "app.bsky.embed.record", "record": subject}})
	}
	analyst, ok := connector.AnalystOf(bluesky.New())
	if !ok {
		t.Fatal("the connector has no statistics")
	}
	since, today := now.AddDate(0, 0, -30).Truncate(24*time.Hour), now.Truncate(24*time.Hour)
	series, err := analyst.Post(t.Context(), w.session, ref, since, today)
	wantSeries(t, series, err, today, "Likes 2", "Reposts 1", "Replies 1", "Quotes 1")
	series, err = analyst.Channel(t.Context(), w.session, since, today)
	posts := len(w.server.Records(t, w.account.DID, "app.bsky.feed.post"))
	wantSeries(t, series, err, today, "Followers 2", "Following 0", fmt.Sprint("Posts ", posts))

	past, err := analyst.Channel(t.Context(), w.session, since, today.AddDate(0, 0, -2))
	wantSeries(t, past, err, today)
	gone, err := analyst.Post(t.Context(), w.session, connector.Ref{ID: ref.ID + "x"}, since, today)
	wantSeries(t, gone, err, today)
	w.server.AppViewAway(t, true)
	defer w.server.AppViewAway(t, false)
	if _, err := analyst.Channel(t.Context(), w.session, since, today); connector.KindOf(err, false) != connector.KindTransient {
		t.Errorf("without the AppView: got the error %v, want a transient one", err)
	}
}

func wantSeries(t *testing.T, got []connector.Series, err error, day time.Time, want ...string) {
	t.Helper()
	var all []string
	for _, s := range got {
		if len(s.Points) != 1 || !s.Points[0].Day.Equal(day) || !s.Level {
			t.Errorf("got the series %+v, want a level of the day %v", s, day)
			continue
		}
		all = append(all, fmt.Sprint(s.Label, " ", s.Points[0].Value))
	}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("got %q, %v, want %q", all, err, want)
	}
}

// cid returns the CID of the record with the given URI.
func (w *rig) cid(t *testing.T, uri string) string {
	t.Helper()
	all := w.server.Records(t, w.account.DID, "app.bsky.feed.post")
	i := slices.IndexFunc(all, func(r pds.Record) bool { return r.URI == uri })
	if i < 0 {
		t.Fatalf("the server has no record %s", uri)
	}
	return all[i].CID
}
