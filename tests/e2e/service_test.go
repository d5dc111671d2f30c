package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
	"crier/tests/dbtest"
)

const (
	email    = "owner@crier.test"
	password = "correct horse battery"
	deadline = 10 * time.Second // PLATFORM_TIMEOUT
	patience = time.Minute
)

type m = map[string]any

// service is one installation: a database and a home folder, which outlive its processes, and one
// organization.
type service struct {
	*process
	database string
	settings map[string]string
	log      *record
	key      string // API key
	session  string
}

// start sets up an installation and starts it. The settings override the defaults of all tests.
func start(t *testing.T, settings map[string]string) *service {
	t.Helper()
	key, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{database: dbtest.URL(t), log: &record{}}
	s.settings = map[string]string{
		"DATABASE_URL": dbtest.Patient(s.database), "CRIER_HOME": t.TempDir(), "PORT": "0", "ENCRYPTION_KEYS": key, "PLATFORM_TIMEOUT": deadline.String(),
		"DATABASE_MAX_CONNS": "12", "API_LIMIT": "100000", "LOG_FORMAT": "json", "LOG_LEVEL": "info",
	}
	maps.Copy(s.settings, settings)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service's log:\n%s", s.log)
		}
	})
	s.organize(t, email)
	s.restart(t)
	s.login(t, email)
	return s
}

// restart starts a process, also for the first time.
func (s *service) restart(t *testing.T) {
	t.Helper()
	s.process = launch(t, s.settings, s.log)
}

// accounts returns the account service on the service's database.
func (s *service) accounts(t *testing.T) *boot.Accounts {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Config{URL: s.database, MaxConns: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	accounts, err := boot.NewAccounts(boot.AccountsConfig{}, boot.AccountsDeps{DB: db, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	return accounts
}

// organize creates an organization with its owner and API key, as an administrator would.
func (s *service) organize(t *testing.T, email string) {
	t.Helper()
	accounts := s.accounts(t)
	owner, err := accounts.CreateOwner(t.Context(), registration.NewOwner{Email: email, Name: "Owner", Password: password, Organization: email})
	if err != nil {
		t.Fatal(err)
	}
	s.key, _, err = accounts.CreateKey(t.Context(), owner, tenancy.NewKey{Name: "tests"})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *service) login(t *testing.T, email string) {
	t.Helper()
	s.session = ""
	a := s.ask(t, http.MethodPost, "/auth/login", m{"provider": "LOCAL", "email": email, "password": password})
	s.session = a.Cookie("auth")
	if a.Status != http.StatusCreated || s.session == "" {
		t.Fatalf("sign-in: got %v, want a session", a)
	}
}

// connect connects a channel with the form, as the dashboard does, and returns the channel's id.
func (s *service) connect(t *testing.T, connector string, form map[string]string) string {
	t.Helper()
	var begun struct{ URL string }
	s.answer(t, &begun, http.MethodGet, "/integrations/social/"+connector+"?refresh=&externalUrl=&redirectUrl=&onboarding=", nil)
	fields, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	s.answer(t, &made, http.MethodPost, "/integrations/social-connect/"+connector, m{"state": begun.URL, "code": base64.StdEncoding.EncodeToString(fields), "timezone": "0"})
	return made.ID
}

// upload uploads a file and returns a reference to it for a post.
func (s *service) upload(t *testing.T, name string, file []byte) m {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	w, err := form.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(file)
	if err := errors.Join(err, form.Close()); err != nil {
		t.Fatal(err)
	}
	var made struct{ ID, Path string }
	s.answer(t, &made, http.MethodPost, "/public/v1/upload", body.Bytes(), "Content-Type", form.FormDataContentType())
	return m{"id": made.ID, "path": made.Path}
}

// create creates a post with its parts and returns its id. kind is "now" or "schedule".
func (s *service) create(t *testing.T, kind string, due time.Time, channel string, parts []part) string {
	t.Helper()
	values := []m{}
	for _, p := range parts {
		images := []m{}
		if p.image != nil {
			image := s.upload(t, "picture", p.image)
			image["alt"] = p.alt
			images = append(images, image)
		}
		values = append(values, m{"content": p.text, "image": images})
	}
	body := m{"type": kind, "date": due.UTC().Format(time.RFC3339), "shortLink": false, "tags": []any{}, "posts": []m{{"integration": m{"id": channel}, "value": values}}}
	var made []struct{ PostID string }
	s.answer(t, &made, http.MethodPost, "/public/v1/posts", body)
	return made[0].PostID
}

// post is a post in a response of the API.
type post struct {
	State     string
	ReleaseID *string
	Posts     []struct {
		State          string
		ReleaseID      *string
		Error          *string
		ErrorCode      *string
		OutcomeUnknown bool
	}
	Timeline []timelineEvent
}

// timelineEvent is an event in a post's timeline.
type timelineEvent struct{ At, Event, Reason string }

func (p post) String() string {
	out, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func (s *service) read(t *testing.T, id string) (p post) {
	t.Helper()
	s.answer(t, &p, http.MethodGet, "/public/v1/posts/"+id, nil)
	return p
}

// awaitEnd waits until a post is published or has failed. It fails the test at end.
func (s *service) awaitEnd(t *testing.T, id string, end time.Time) (p post) {
	t.Helper()
	await(t, "the end of the post", end, func() bool {
		p = s.read(t, id)
		return p.State == "PUBLISHED" || p.State == "ERROR"
	}, func() string { return p.String() })
	return p
}

// ask sends a request on a new connection, because the other end may have been killed. Headers are
// pairs of name and value.
func (s *service) ask(t *testing.T, method, path string, body any, headers ...string) call.Answer {
	t.Helper()
	credential := []string{"auth", s.session}
	if strings.HasPrefix(path, "/public/") {
		credential = []string{"Authorization", s.key}
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := call.Do(t.Context(), client, method, "http://"+s.address+path, body, append(credential, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// answer is like ask for requests that must succeed. It decodes the response into out.
func (s *service) answer(t *testing.T, out any, method, path string, body any, headers ...string) {
	t.Helper()
	if err := s.ask(t, method, path, body, headers...).Into(out); err != nil {
		t.Fatalf("%s %s: got the error %v, want a success", method, path, err)
	}
}

// await polls until ok returns true, and fails the test at end. there describes the last state.
func await(t *testing.T, what string, end time.Time, ok func() bool, there func() string) {
	t.Helper()
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen in time; got %s", what, there())
		}
		time.Sleep(50 * time.Millisecond)
	}
}
