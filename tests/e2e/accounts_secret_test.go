package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// secretValue is a secret that the service or a person created.
type secretValue struct {
	kind, value string
	// shown is the number of responses whose body may contain the secret. inCookie is the number of
	// responses that may set it as a cookie; -1 allows any number.
	shown, inCookie int
}

// vault collects the secrets of TestAccounts_SecretsNeverLeak.
type vault struct{ all []secretValue }

func (v *vault) keep(kind, value string, shown, inCookie int) string {
	v.all = append(v.all, secretValue{kind: kind, value: value, shown: shown, inCookie: inCookie})
	return value
}

// keepSession records the cookies of a browser that has just signed in.
func (v *vault) keepSession(b *browser) {
	v.keep("session", b.cookies["auth"], 0, 1)
	// Signing in from a known browser sets the cookie again.
	v.keep("device", b.cookies["device"], 0, -1)
}

func TestAccounts_SecretsNeverLeak(t *testing.T) {
	t.Parallel()
	provider, issuer := startIssuer(t)
	s := startWithIssuer(t, issuer)
	v := &vault{}
	ada, eve := &secretive{vault: v}, &secretive{vault: v}
	ada.browser, eve.browser = s.browse(), s.browse()
	ada.signUp(t, "ada@corp.example")
	eve.signUp(t, "eve@corp.example")
	ada.shareSecrets(t, eve)
	ada.useFactor(t)
	ada.changeSecrets(t)
	eve.deleteAndRestore(t)
	ada.replaceRecoveryCodes(t)

	queued := m{"email": stuck, "password": v.keep("password", "Never-to-be-active-11", 0, 0), "company": "Stuck"}
	s.browse().want(t, http.StatusCreated, nil, http.MethodPost, "/auth/register", queued)

	visitor := s.browse()
	address := visitor.beginAt(t, generic)
	v.keep("state", visitor.cookies["oauth_state"], 1, 1) // it is in the address of the provider
	back := provider.SignIn(t, address, "ada")
	v.keep("provider's code", back.Get("code"), 0, 0)
	var claim signInAnswer
	if err := visitor.finishAt(t, generic, back, nil).Into(&claim); err != nil {
		t.Fatal(err)
	}
	v.keep("provider token", claim.Token, 1, 0)
	v.keep("client secret", "client-secret-3f9a", 0, 0)
	v.keep("encryption key", s.settings["ENCRYPTION_KEYS"], 0, 0)
	for _, path := range []string{"/user/self", "/user/sessions", "/user/mfa/status", "/settings/api-keys", "/settings/invitations",
		"/settings/team", "/settings/organization", "/user/organizations", "/user/identities"} {
		ada.on(1).want(t, http.StatusOK, nil, http.MethodGet, path, nil)
	}
	ada.audit(t)
	s.awaitMailsSent(t)
	s.searchSecrets(t, v.all)
}

// secretive is a person whose secrets are recorded.
type secretive struct {
	*browser
	*vault
	email, password string
	factor          *device
	recovery        []string
}

func (p *secretive) signUp(t *testing.T, email string) {
	p.email, p.password = email, p.keep("password", "Correct-horse-"+email[:3]+"-battery-77", 0, 0)
	var out signInAnswer
	body := m{"email": email, "password": p.password, "company": "Corp of " + email}
	p.want(t, http.StatusCreated, &out, http.MethodPost, "/auth/register", body)
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/resend-activation", m{"email": email})
	first := p.keep("activation link", link(t, p.letter(t, email, "Activate", 1)), 0, 0)
	p.keep("activation link", link(t, p.letter(t, email, "Activate", 2)), 0, 0)
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/activate", m{"code": first})
	p.keepSession(p.browser)
}

// shareSecrets creates keys and invitations, and lets guest use an invitation.
func (p *secretive) shareSecrets(t *testing.T, guest *secretive) {
	key, id := p.createKey(t, "Newsletter")
	p.keep("API key", key, 1, 0)
	p.withKey(t, 0, key)
	var made struct{ APIKey string }
	p.want(t, http.StatusCreated, &made, http.MethodPost, "/user/api-key/rotate", m{"id": id, "overlapHours": 1})
	p.keep("API key", made.APIKey, 1, 0)
	p.withKey(t, 1, made.APIKey)
	token, _ := p.invite(t, guest.email, "USER", true)
	p.keep("invitation", token, 1, 0)
	mailed := p.keep("invitation", link(t, p.letter(t, guest.email, "Invitation", 1)), 0, 0)
	anybody, _ := p.invite(t, "", "USER", false)
	p.keep("invitation", anybody, 1, 0)
	if guest.on(1).join(t, mailed) == "" {
		t.Fatal("the invitation was refused")
	}
	guest.cookies["org"] = anybody // the next sign-in offers it
	guest.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/login", m{"email": guest.email, "password": guest.password})
	p.keepSession(guest.browser)
}

// useFactor enables a second factor and signs in with it.
func (p *secretive) useFactor(t *testing.T) {
	var begun struct{ Secret, OtpauthURL string }
	p.want(t, http.StatusCreated, &begun, http.MethodPost, "/user/mfa/begin", m{"password": p.password})
	p.factor = &device{secret: p.keep("second factor", begun.Secret, 1, 0)}
	var done signInAnswer
	code := p.keep("code", p.factor.code(t), 0, 0)
	p.want(t, http.StatusCreated, &done, http.MethodPost, "/user/mfa/confirm", m{"code": code})
	for _, c := range done.RecoveryCodes {
		p.recovery = append(p.recovery, p.keep("recovery code", c, 1, 0))
	}
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/user/logout", nil)
	p.signIn(t, m{"code": p.keep("code", p.factor.code(t), 0, 0)})
}

func (p *secretive) replaceRecoveryCodes(t *testing.T) {
	var replaced signInAnswer
	code := p.keep("code", p.factor.code(t), 0, 0)
	p.want(t, http.StatusCreated, &replaced, http.MethodPost, "/user/mfa/recovery-codes", m{"code": code})
	for _, c := range replaced.RecoveryCodes {
		p.keep("recovery code", c, 1, 0)
	}
}

// signIn signs in with the password and a proof of the second factor.
func (p *secretive) signIn(t *testing.T, proof m) (done signInAnswer) {
	t.Helper()
	var step signInAnswer
	p.want(t, http.StatusCreated, &step, http.MethodPost, "/auth/login", m{"email": p.email, "password": p.password})
	proof["mfaToken"] = p.keep("mfaToken", step.MFAToken, 1, 0)
	p.on(1).want(t, http.StatusCreated, &done, http.MethodPost, "/auth/mfa/verify", proof)
	if done.Login {
		p.keepSession(p.browser)
	}
	return done
}

// changeSecrets changes the password by a link and in a session, and changes the address.
func (p *secretive) changeSecrets(t *testing.T) {
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/forgot", m{"email": p.email})
	reset := p.keep("reset link", link(t, p.letter(t, p.email, "new password", 1)), 0, 0)
	p.password = p.keep("password", "Another-horse-88-battery", 0, 0)
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/forgot-return",
		m{"password": p.password, "repeatPassword": p.password, "token": reset})
	p.signIn(t, m{"recoveryCode": p.recovery[0]})
	next := p.keep("password", "A-third-horse-99-battery", 0, 0)
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/user/change-password", m{"oldPassword": p.password, "newPassword": next})
	p.password = next
	p.want(t, http.StatusBadRequest, nil, http.MethodPost, "/user/change-password",
		m{"oldPassword": p.keep("password", "a wrong password 55", 0, 0), "newPassword": p.keep("password", "not taken 66", 0, 0)})
	renamed := "ada.new@corp.example"
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/user/change-email", m{"email": renamed, "password": p.password})
	for _, address := range []string{p.email, renamed} {
		token := p.keep("confirmation link", link(t, p.letter(t, address, "email address", 1)), 0, 0)
		p.on(1).want(t, http.StatusCreated, nil, http.MethodPost, "/auth/confirm-email", m{"token": token})
	}
	p.email = renamed
}

// deleteAndRestore requests the deletion of the account and undoes it.
func (p *secretive) deleteAndRestore(t *testing.T) {
	p.want(t, http.StatusCreated, nil, http.MethodPost, "/settings/delete-account", m{"password": p.password, "confirm": "DELETE"})
	var step signInAnswer
	p.want(t, http.StatusCreated, &step, http.MethodPost, "/auth/login", m{"email": p.email, "password": p.password})
	token := p.keep("restore token", step.RestoreToken, 1, 0)
	p.on(1).want(t, http.StatusCreated, nil, http.MethodPost, "/auth/restore", m{"token": token})
	p.keepSession(p.browser)
}

// awaitMailsSent waits until no mail is queued except the one to stuck.
func (s *instance) awaitMailsSent(t *testing.T) {
	t.Helper()
	left := 0
	await(t, "the last mail", time.Now().Add(lateLimit), func() bool {
		left = s.count(t, "select count(*) from mail")
		return left == 1
	}, func() string { return fmt.Sprint(left, " queued mails") })
}

// searchSecrets looks for the secrets in the logs, the metrics, the database, and the responses
// that must not show them.
func (s *instance) searchSecrets(t *testing.T, all []secretValue) {
	t.Helper()
	places := map[string]string{"the database": s.dump(t)}
	for i, n := range s.nodes {
		places[fmt.Sprint("the log of process ", i)] = n.log.text()
		places[fmt.Sprint("the metrics of process ", i)] = n.metrics(t)
	}
	// Finding what is not secret shows that the search works.
	for place, marker := range map[string]string{
		"the database": "eve@corp.example", "the log of process 0": "mail sent", "the metrics of process 0": "crier_passwords_hashed_total",
	} {
		if !strings.Contains(places[place], marker) && !strings.Contains(places["the log of process 1"], marker) {
			t.Errorf("%s has no %q, so this test searches in the wrong place", place, marker)
		}
	}
	size, kinds := 0, map[string]int{}
	for place, text := range places {
		size += len(text)
		for _, secret := range all {
			for name, form := range forms(secret.value) {
				if form.MatchString(text) {
					t.Errorf("%s contains a %s, %s", place, secret.kind, name)
				}
			}
		}
	}
	for _, secret := range all {
		kinds[secret.kind]++
		s.checkAnswers(t, secret)
	}
	t.Logf("searched for %d secrets in %d answers and %d bytes of logs, metrics and database: %v", len(all),
		len(s.heard.all), size, kinds)
}

// forms returns expressions for the forms in which a secret might appear.
func forms(secret string) map[string]*regexp.Regexp {
	raw := []byte(secret)
	if regexp.MustCompile(`^[0-9]{6}$`).MatchString(secret) {
		return map[string]*regexp.Regexp{"as it is": regexp.MustCompile(`(^|[^0-9.])` + secret + `($|[^0-9])`)}
	}
	out := map[string]*regexp.Regexp{}
	for name, text := range map[string]string{
		"as it is": secret, "in hexadecimal": hex.EncodeToString(raw), "in a URL": url.QueryEscape(secret),
		"in base64":     strings.TrimRight(base64.StdEncoding.EncodeToString(raw), "="),
		"in URL base64": strings.TrimRight(base64.URLEncoding.EncodeToString(raw), "="),
	} {
		out[name] = regexp.MustCompile(regexp.QuoteMeta(text))
	}
	return out
}

// checkAnswers checks that the expected numbers of responses contain the secret in their body and
// in a cookie, and that no other header contains it.
func (s *instance) checkAnswers(t *testing.T, secret secretValue) {
	t.Helper()
	form := forms(secret.value)["as it is"]
	shown, inCookie := []string{}, []string{}
	for _, a := range s.heard.all {
		if form.MatchString(a.head) {
			t.Errorf("a header of the answer of %s contains a %s", a.where, secret.kind)
		}
		if form.MatchString(a.body) {
			shown = append(shown, a.where)
		}
		if form.MatchString(a.cookies) {
			inCookie = append(inCookie, a.where)
		}
	}
	if len(shown) != secret.shown || secret.inCookie >= 0 && len(inCookie) != secret.inCookie {
		t.Errorf("got a %s in the answers of %v and in the cookies of %v, want %d and %d", secret.kind, shown, inCookie,
			secret.shown, secret.inCookie)
	}
}

// dump returns the rows of all tables as text, followed by their binary values in raw form.
func (s *instance) dump(t *testing.T) string {
	t.Helper()
	conn := s.super(t)
	rows, err := conn.Query(t.Context(), `select format('%I.%I', schemaname, tablename) from pg_tables
		where schemaname not in ('pg_catalog', 'information_schema') order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, table := range tables {
		rows, err := conn.Query(t.Context(), "select to_jsonb(r)::text || r::text from "+table+" r")
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			out.WriteString(text + "\n")
			for _, found := range binaryForm.FindAllStringSubmatch(text, -1) {
				raw, err := hex.DecodeString(found[1])
				if err != nil {
					t.Fatal(err)
				}
				out.Write(raw)
				out.WriteByte('\n')
			}
		}
	}
	t.Logf("the dump has %d tables and %d bytes", len(tables), out.Len())
	return out.String()
}

// binaryForm matches a binary value as Postgres prints it.
var binaryForm = regexp.MustCompile(`\\x((?:[0-9a-f]{2})+)`)
