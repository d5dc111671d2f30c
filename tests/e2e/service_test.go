package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	tenancyservice "crier/tenancy/service"
	"crier/tests/dbtest"
)

const (
	email    = "owner@crier.test"
	password = "correct horse battery"
	deadline = 10 * time.Second // REQUEST_DEADLINE
	patience = time.Minute
)

type m = map[string]any

// service is one installation: a database and a home folder that outlive its processes, and one organization.
type service struct {
	*process
	database string
	settings map[string]string
	log      *record
	key      string // of the API
	session  string
}

// start sets up an installation and starts it; settings come on top of those that every test needs.
func start(t *testing.T, settings map[string]string) *service {
	t.Helper()
	key, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{database: dbtest.URL(t), log: &record{}}
	s.settings = map[string]string{
		"DATABASE_URL": s.database, "CRIER_HOME": t.TempDir(), "PORT": "0", "ENCRYPTION_KEYS": key, "REQUEST_DEADLINE": deadline.String(),
		"DATABASE_MAX_CONNS": "12", "API_LIMIT": "100000", "LOG_FORMAT": "json", "LOG_LEVEL": "info",
	}
	maps.Copy(s.settings, settings)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service's log:\n%s", s.log)
		}
	})
	s.organize(t)
	s.restart(t)
	s.login(t)
	return s
}

// restart starts the process again, or for the first time.
func (s *service) restart(t *testing.T) {
	t.Helper()
	s.process = launch(t, s.settings, s.log)
}

// organize makes the owner, the organization and its API key, as an administrator would.
// accounts works on the service's database beside it.
func (s *service) accounts(t *testing.T) *tenancyservice.Accounts {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Config{URL: s.database, MaxConns: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	accounts, err := tenancyservice.New(tenancyservice.Deps{DB: db, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	return accounts
}

func (s *service) organize(t *testing.T) {
	t.Helper()
	accounts := s.accounts(t)
	owner, err := accounts.CreateOwner(t.Context(), tenancyservice.NewOwner{Email: email, Name: "Owner", Password: password, Organization: "Organization"})
	if err != nil {
		t.Fatal(err)
	}
	if s.key, _, err = accounts.CreateKey(t.Context(), owner, "tests"); err != nil {
		t.Fatal(err)
	}
}

func (s *service) login(t *testing.T) {
	t.Helper()
	s.loginAs(t, email)
}

func (s *service) loginAs(t *testing.T, email string) {
	t.Helper()
	s.session = ""
	resp := s.do(t, s.request(t, http.MethodPost, "/auth/login", m{"provider": "LOCAL", "email": email, "password": password}))
	for _, c := range resp.Cookies() {
		if c.Name == "auth" {
			s.session = c.Value
		}
	}
	if resp.StatusCode != http.StatusCreated || s.session == "" {
		t.Fatalf("the sign-in answers %s", resp.Status)
	}
}

// connect connects a channel with its form, as the dashboard does, and returns its id.
func (s *service) connect(t *testing.T, connector string, form map[string]string) string {
	t.Helper()
	var begun struct{ URL string }
	s.answer(t, s.request(t, http.MethodGet, "/integrations/social/"+connector+"?refresh=&externalUrl=&redirectUrl=&onboarding=", nil), http.StatusOK, &begun)
	fields, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	s.answer(t, s.request(t, http.MethodPost, "/integrations/social-connect/"+connector, m{"state": begun.URL, "code": base64.StdEncoding.EncodeToString(fields), "timezone": "0"}), http.StatusCreated, &made)
	return made.ID
}

// upload uploads a file and returns what a post names it by.
func (s *service) upload(t *testing.T, name string, file []byte) m {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	w, err := form.CreateFormFile("file", name)
	if err == nil {
		_, err = w.Write(file)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	req := s.request(t, http.MethodPost, "/public/v1/upload", nil)
	req.Body, req.ContentLength = io.NopCloser(&body), int64(body.Len())
	req.Header.Set("Content-Type", form.FormDataContentType())
	var made struct{ ID, Path string }
	s.answer(t, req, http.StatusCreated, &made)
	return m{"id": made.ID, "path": made.Path}
}

// create books a post with its parts and returns its id. kind is now or schedule.
func (s *service) create(t *testing.T, kind string, due time.Time, channel string, parts []part) string {
	t.Helper()
	values := []m{}
	for _, p := range parts {
		images := []m{}
		if p.image != nil {
			image := s.upload(t, "picture.png", p.image)
			image["alt"] = p.alt
			images = append(images, image)
		}
		values = append(values, m{"content": p.text, "image": images})
	}
	body := m{"type": kind, "date": due.UTC().Format(time.RFC3339), "shortLink": false, "tags": []any{}, "posts": []m{{"integration": m{"id": channel}, "value": values}}}
	var made []struct{ PostID string }
	s.answer(t, s.request(t, http.MethodPost, "/public/v1/posts", body), http.StatusCreated, &made)
	return made[0].PostID
}

// post is a post as the API tells it.
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
	Timeline []happening
}

// happening is a line of a post's timeline.
type happening struct{ At, Event, Reason string }

func (p post) String() string {
	out, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func (s *service) read(t *testing.T, id string) (p post) {
	t.Helper()
	s.answer(t, s.request(t, http.MethodGet, "/public/v1/posts/"+id, nil), http.StatusOK, &p)
	return p
}

// settled waits until a post is published or has failed, at most until end.
func (s *service) settled(t *testing.T, id string, end time.Time) (p post) {
	t.Helper()
	await(t, "the end of the post", end, func() bool {
		p = s.read(t, id)
		return p.State == "PUBLISHED" || p.State == "ERROR"
	}, func() string { return p.String() })
	return p
}

func (s *service) request(t *testing.T, method, path string, body any) *http.Request {
	t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.address+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/public/") {
		req.Header.Set("Authorization", s.key)
	} else if s.session != "" {
		req.Header.Set("auth", s.session)
	}
	return req
}

// do reads the whole answer. The connection is not kept: its other end gets killed.
func (s *service) do(t *testing.T, req *http.Request) *http.Response {
	t.Helper()
	req.Close = true
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	return resp
}

func (s *service) answer(t *testing.T, req *http.Request, status int, out any) {
	t.Helper()
	resp := s.do(t, req)
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == status {
		err = json.Unmarshal(raw, out)
	} else if err == nil {
		err = fmt.Errorf("status %d is wanted", status)
	}
	if err != nil {
		t.Fatalf("%s %s: %v; the answer is %s %s", req.Method, req.URL.Path, err, resp.Status, raw)
	}
}

// await looks until ok says true, at most until end; there says what it saw last.
func await(t *testing.T, what string, end time.Time, ok func() bool, there func() string) {
	t.Helper()
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("%s did not come in time; there is %s", what, there())
		}
		time.Sleep(50 * time.Millisecond)
	}
}
