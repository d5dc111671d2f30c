package boot

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// lines is a writer that sends each write, which is one log record, to the channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestStart_ChecksIssuerInBackground(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another issuer": {func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": "https://another.example"})
		}, "https://another.example"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "until a provider responds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := httptest.NewServer(c.answer)
			t.Cleanup(issuer.Close)
			log := make(lines, 100)
			serveWith(t, map[string]string{
				"OIDC_ISSUER": issuer.URL, "OIDC_CLIENT_ID": "id", "OIDC_CLIENT_SECRET": "secret",
			}, func(a *App) {
				a.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			for late := time.After(time.Minute); ; {
				select {
				case line := <-log:
					if !strings.Contains(line, "sign-ins") {
						continue
					}
					if !strings.Contains(line, issuer.URL) || !strings.Contains(line, c.want) {
						t.Errorf("got the warning %q, want one with the issuer and %q", line, c.want)
					}
					return
				case <-late:
					t.Fatal("got no warning within a minute, want one about the issuer")
				}
			}
		})
	}
}

// A person's review requests end only when the person leaves. A demotion also reports everything
// else that the person made.
func TestTakeMade_NamesReviewsOnlyOfPeopleWhoLeave(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	r.Register(publishtest.Lenient{})
	posts := r.Deps.Posts(publishtest.Limits)
	a := &App{useCases: useCases{
		hooks:     r.Deps.Webhooks(publishtest.Config{MaxWebhooks: 1}),
		apps:      r.Deps.Apps(),
		approvals: r.Deps.Approvals(publishtest.Limits, posts, nil),
	}}
	who := r.Organization()
	post, err := publishtest.CreateAt(t.Context(), posts, who, r.Connect(who.Org).String(), publishing.CreateDraft,
		time.Now().Add(time.Hour), publishing.Repeat{})
	r.OK(err)
	ask := publishing.RequestApproval{ReviewerEmail: new("client@example.com")}
	_, err = a.approvals.Request(t.Context(), who, post.String(), ask)
	r.OK(err)
	r.Tenant(who.Org, `insert into webhook (org_id, id, name, url, signing_key, created_by, created_at, updated_at)
		values ($1, gen_random_uuid(), 'hook', 'https://example.com', 'sealed', $2, now(), now())`, who.Org, who.Person)
	for name, c := range map[string]struct {
		leaves bool
		want   []string
	}{
		"a demotion": {leaves: false}, "a removal": {leaves: true, want: []string{post.String()}},
	} {
		var made tenancy.CreatedBy
		r.OK(r.Store.InOrg(t.Context(), who.Org, func(tx *db.Tx) (err error) {
			made, err = publishingOf{app: a}.TakeMade(t.Context(), tx, tenancy.Maker{Person: who.Person, Leaves: c.leaves})
			return err
		}))
		var reviews []string
		for _, review := range made.Reviews {
			reviews = append(reviews, review.Post)
		}
		if !slices.Equal(reviews, c.want) {
			t.Errorf("%s: got the reviews of %v, want %v", name, reviews, c.want)
		}
		if len(made.Webhooks) != 1 {
			t.Errorf("%s: got %d webhooks, want 1", name, len(made.Webhooks))
		}
	}
}
