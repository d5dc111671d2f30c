package accounts

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp/totp"
	"github.com/tidwall/gjson"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/sandboxtest"
	"crier/tests/smtptest"
	"crier/tests/suite"
)

// twiceURL is BASE_URL. The host does not exist: the clients dial a process for any host name.
const twiceURL = "http://twice.test"

// processes is a service of two processes on one database.
type processes struct {
	apps              [2]*boot.App
	clients           [2]*http.Client
	mail              *smtptest.Server
	sandbox, receiver string
	judge             sandboxtest.Judge
	received          received
	made              atomic.Int64

	mu    sync.Mutex // protects super
	super *pgx.Conn
}

// received records the calls to webhooks.
type received struct {
	mu  sync.Mutex
	all []receivedCall
}

type receivedCall struct {
	path, body string
	header     http.Header
}

func (r *received) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodGet {
		_, _ = w.Write(pictureOf(7))
		return
	}
	var body bytes.Buffer
	_, _ = body.ReadFrom(q.Body) // an interrupted call has no valid signature
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, receivedCall{path: q.URL.Path, body: body.String(), header: q.Header})
}

// to returns the calls to a path.
func (r *received) to(path string) []receivedCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(c receivedCall) bool { return c.path != path })
}

func TestMain(m *testing.M) { os.Exit(suite.Run(m)) }

// common returns the processes shared by tests that change nothing outside their own organizations.
var common = suite.Once(startProcesses)

func startProcesses(t testing.TB) *processes {
	t.Helper()
	p := &processes{sandbox: sandboxtest.Start(t), mail: smtptest.Start(t, smtptest.Plain())}
	p.judge = sandboxtest.Judge{URL: p.sandbox}
	must(t, p.judge.AddApp(t.Context(), sandboxtest.App{
		ClientID: "id", Secret: "secret", Redirects: []string{twiceURL + "/connect/sandbox-oauth"},
	}))
	receiver := httptest.NewServer(&p.received)
	t.Cleanup(receiver.Close)
	p.receiver = receiver.URL
	key, err := secret.GenerateKey()
	must(t, err)
	database := dbtest.URL(t)
	values := map[string]string{
		"DATABASE_URL": database, "DATABASE_MAX_CONNS": "12", "SANDBOX_URL": p.sandbox, "ENCRYPTION_KEYS": key,
		"FILES_DIR": t.TempDir(), "PORT": "0", "BASE_URL": twiceURL, "DRAIN_DELAY": "0s",
		"DRAIN_TIMEOUT": "2s", "API_LIMIT": "1000000", "APP_LIMIT": "1000000", "REGISTRATION": "open",
		"TRUSTED_PROXIES": "127.0.0.1", "ENTERPRISE_SECRET": enterpriseKey, "CLUSTER_LISTEN": "127.0.0.1:0",
		"REDIS_URL": "redis://" + miniredis.RunT(t).Addr(), "SMTP_URL": p.mail.URL(), "MAIL_FROM": "crier@crier.example",
		"OUTBOUND_ALLOW": receiver.Listener.Addr().String(), "SWEEP_INTERVAL": "1s",
		"SANDBOX_OAUTH_CLIENT_ID": "id", "SANDBOX_OAUTH_CLIENT_SECRET": "secret",
	}
	for i := range p.apps {
		p.startNode(t, i, values)
	}
	p.super = dbtest.SuperIn(t, database)
	return p
}

func (p *processes) startNode(t testing.TB, i int, values map[string]string) {
	t.Helper()
	values["CRIER_HOME"] = t.TempDir()
	var cfg boot.Config
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	must(t, env.Load(t.Context(), lookup, &cfg))
	p.apps[i] = boot.New(cfg, slog.New(slog.DiscardHandler))
	must(t, p.apps[i].Start(t.Context()))
	t.Cleanup(func() {
		if err := p.apps[i].Close(); err != nil {
			t.Errorf("process %d does not stop cleanly: %v", i, err)
		}
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.apps[i].Addr())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	p.clients[i] = &http.Client{
		Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (p *processes) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.super.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// owner is a person who owns an organization, with the test that created them.
type owner struct {
	*processes
	t                                            *testing.T
	name, email, person, org, session, key, from string
	as                                           tenancy.Principal
	// reader is the process that the next check queries.
	reader int
}

type m = map[string]any

// owner creates a person with an organization, a session and a key.
func (p *processes) owner(t *testing.T) *owner {
	t.Helper()
	o := p.visitor(t)
	person := o.insertPerson(o.email)
	made, err := p.apps[0].Accounts.CreateOrganization(t.Context(),
		tenancy.Principal{Person: person, Name: o.email, Via: tenancy.ViaSession}, "Works of "+o.name)
	must(t, err)
	o.person, o.org, o.session = person.String(), made.ID.String(), o.login(o.email, password)
	o.as, err = p.apps[0].Accounts.Session(t.Context(), o.session, o.org, "", from(""))
	must(t, err)
	o.key = o.session201("/settings/api-keys", m{"name": "of the test"}).Get("key").String()
	return o
}

// visitor returns a client in its own network, with unused names.
func (p *processes) visitor(t *testing.T) *owner {
	n := p.made.Add(1)
	return &owner{
		processes: p, t: t, name: fmt.Sprintf("n%d", n), email: fmt.Sprintf("n%d@d%d.example", n, n),
		from: fmt.Sprintf("2001:db8:%x::1", n),
	}
}

func (o *owner) insertPerson(email string) tenancy.PersonID {
	o.t.Helper()
	person := id.New[tenancy.PersonTag]()
	o.exec(o.t, `insert into person (id, email, name, password_hash, verified, created_at)
		values ($1, $2, 'Ada', $3, true, now())`, person, email, cheapHash)
	return person
}

// member adds a person to the organization and returns them with a session.
func (o *owner) member(role tenancy.Role) *owner {
	o.t.Helper()
	other := o.visitor(o.t)
	person := other.insertPerson(other.email)
	o.exec(o.t, `insert into member (org_id, person_id, role, created_at) values ($1, $2, $3, now())`, o.org, person, role)
	other.person, other.org, other.session = person.String(), o.org, other.login(other.email, password)
	return other
}

// send sends a request to a process, with the key for routes of the public API and with the session
// for others.
func (o *owner) send(node int, method, path string, body any, headers ...string) (call.Answer, error) {
	all := []string{"X-Forwarded-For", o.from, "Origin", twiceURL}
	switch {
	case strings.HasPrefix(path, "/public/v1/"):
		all = append(all, "Authorization", o.key)
	case o.session != "":
		all = append(all, "auth", o.session, "showorg", o.org)
	}
	return call.Do(o.t.Context(), o.clients[node], method, twiceURL+path, body, append(all, headers...)...)
}

// ask sends a request that must succeed to the processes in turn, and returns the body.
func (o *owner) ask(method, path string, body any, headers ...string) gjson.Result {
	o.t.Helper()
	o.reader = 1 - o.reader
	a, err := o.send(o.reader, method, path, body, headers...)
	must(o.t, err)
	if a.Status < 200 || a.Status > 299 {
		o.t.Fatalf("%s %s: got %v, want success", method, path, a)
	}
	return gjson.Parse(a.Body)
}

func (o *owner) get(path string) gjson.Result { o.t.Helper(); return o.ask(http.MethodGet, path, nil) }

func (o *owner) session201(path string, body any) gjson.Result {
	o.t.Helper()
	return o.ask(http.MethodPost, path, body)
}

func (o *owner) post201(path string, body any) gjson.Result {
	o.t.Helper()
	return o.ask(http.MethodPost, "/public/v1"+path, body)
}

// wantStatus sends a request without a body to both processes.
func (o *owner) wantStatus(want int, method, path string, headers ...string) {
	o.t.Helper()
	for node := range o.clients {
		if a, err := o.send(node, method, path, nil, headers...); err != nil || a.Status != want {
			o.t.Errorf("%s %s of process %d: got %v, %v; want %d", method, path, node, a, err, want)
		}
	}
}

// login returns the session of a person without a second factor.
func (o *owner) login(email, password string) string {
	o.t.Helper()
	a := o.signIn(email, password)
	if a.Cookie("auth") == "" {
		o.t.Fatalf("the log-in of %s: got %v, want a session", email, a)
	}
	return a.Cookie("auth")
}

func (o *owner) signIn(email, password string) call.Answer {
	o.t.Helper()
	a, err := o.processes.visitor(o.t).send(0, http.MethodPost, "/auth/login", m{"email": email, "password": password})
	must(o.t, err)
	return a
}

// letter waits for a mail with a link to an address, and returns its token.
func (o *owner) letter(email string) (token string) {
	o.t.Helper()
	eventually(o.t, "a mail to "+email, func() bool {
		all := o.letters(email)
		if len(all) > 0 {
			token = all[0]
		}
		return len(all) > 0
	})
	return token
}

// letters returns the tokens of the links in all mails to an address.
func (o *owner) letters(email string) (tokens []string) {
	for _, x := range o.mail.Messages() {
		if found := linkForm.FindStringSubmatch(x.Text); x.To == email && found != nil {
			tokens = append(tokens, found[1])
		}
	}
	return tokens
}

// redeem sends the tokens from mails to some addresses, including mails that have yet to arrive,
// until the person signs in.
func (o *owner) redeem(path string, body func(token string) m, email, password string, addresses ...string) {
	o.t.Helper()
	tried := map[string]bool{}
	eventually(o.t, "the sign-in of "+email, func() bool {
		for _, address := range addresses {
			for _, token := range o.letters(address) {
				if !tried[token] {
					tried[token] = true
					_, err := o.visitor(o.t).send(0, http.MethodPost, path, body(token))
					must(o.t, err)
				}
			}
		}
		return len(tried) >= len(addresses) && o.signIn(email, password).Cookie("auth") != ""
	})
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1200 {
		if ok() {
			return
		}
		if err := clock.Sleep(t.Context(), 50*time.Millisecond); err != nil {
			break
		}
	}
	t.Fatalf("timed out waiting for %s", what)
}

// channel connects an account of the sandbox.
func (o *owner) channel() string {
	o.t.Helper()
	return o.ask(http.MethodPost, "/integrations/social-connect/sandbox", o.connect()).Get("id").String()
}

// connect starts a connect to the sandbox and returns the body that finishes it.
func (o *owner) connect() m {
	o.t.Helper()
	fields, err := json.Marshal(o.form())
	must(o.t, err)
	return m{
		"state": o.get("/integrations/social/sandbox").Get("url").String(),
		"code":  base64.StdEncoding.EncodeToString(fields),
	}
}

func (o *owner) form() map[string]string {
	return map[string]string{"service": o.sandbox, "name": "account-" + o.name, "password": password, "grade": "A"}
}

func (o *owner) newPost(kind, channel string) m {
	return m{
		"type": kind, "date": "2040-01-02T15:04:05Z", "shortLink": false, "tags": []any{},
		"posts": []m{{"integration": m{"id": channel}, "value": []m{{"content": "words"}}}},
	}
}

// post stores a post on a new channel.
func (o *owner) post(kind string) (post string) {
	o.t.Helper()
	return o.post201("/posts", o.newPost(kind, o.channel())).Get("0.postId").String()
}

// approval requests approval of a draft and returns the ids of the draft and the request, and the
// token of the link.
func (o *owner) approval() (approval, post, token string) {
	o.t.Helper()
	post = o.post("draft")
	approval = o.post201("/posts/"+post+"/request-approval", m{}).Get("id").String()
	return approval, post, o.reviewToken()
}

// reviewToken returns the token of the only approval. All members except the requester see the
// address of its page.
func (o *owner) reviewToken() string {
	o.t.Helper()
	list := o.member(tenancy.RoleAdmin).get("/approvals")
	o.wantValue(list, "approvals.#", "1")
	address := list.Get("approvals.0.reviewUrl").String()
	return address[strings.LastIndex(address, "/")+1:]
}

// uploadForm returns the body and the content type of an upload of a picture.
func uploadForm(t *testing.T) (body []byte, kind string) {
	t.Helper()
	var form bytes.Buffer
	fields := multipart.NewWriter(&form)
	part, err := fields.CreateFormFile("file", "picture.png")
	must(t, err)
	_, err = part.Write(pictureOf(5))
	must(t, err)
	must(t, fields.Close())
	return form.Bytes(), fields.FormDataContentType()
}

func pictureOf(side int) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))) // a buffer never fails
	return b.Bytes()
}

func (o *owner) upload() gjson.Result {
	o.t.Helper()
	body, kind := uploadForm(o.t)
	return o.ask(http.MethodPost, "/public/v1/upload", body, "Content-Type", kind)
}

// webhook creates a webhook at a path of the receiver.
func (o *owner) webhook() (hook, secret string) {
	o.t.Helper()
	made := o.post201("/webhooks", m{"name": "hook", "url": o.receiver + "/" + o.name, "integrations": []any{}})
	return made.Get("id").String(), made.Get("secret").String()
}

// enroll gives the person a second factor and returns its secret and the recovery codes.
func (o *owner) enroll() (factor string, recovery []gjson.Result) {
	o.t.Helper()
	factor = o.session201("/user/mfa/begin", m{"password": password}).Get("secret").String()
	return factor, o.session201("/user/mfa/confirm", m{"code": codeOf(o.t, factor, 0)}).Get("recoveryCodes").Array()
}

// codeOf returns the code of a factor in the given number of 30-second steps from now.
func codeOf(t *testing.T, factor string, steps int) string {
	t.Helper()
	code, err := totp.GenerateCode(factor, time.Now().Add(time.Duration(steps)*30*time.Second))
	must(t, err)
	return code
}
