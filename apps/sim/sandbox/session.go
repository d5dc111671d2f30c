package sandbox

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"

	"crier/platform/id"
)

// grade describes what an account guarantees about repeated posts. Connectors use the same letters
// for their grades.
type grade string

const (
	gradeA grade = "A" // recognizes a repeated post by its key
	gradeC grade = "C" // its posts can be read back
	gradeE grade = "E" // its posts cannot be read back
)

// Explain returns a sentence about the grade for page.html. For an unknown grade, it returns "",
// which check uses to detect such grades.
func (g grade) Explain() string {
	switch g {
	case gradeA:
		return "Grade A: every post has a key, and sending the same key again returns the first post " +
			"instead of creating another."
	case gradeC:
		return "Grade C: every request creates a new post, but what was published can be read back and compared."
	case gradeE:
		return "Grade E: every request creates a new post, and the platform cannot be asked what it has published."
	}
	return ""
}

const (
	defaultLength  = 500  // graphemes
	defaultToken   = 3600 // seconds
	refreshLife    = 90 * 24 * time.Hour
	passwordRounds = 10_000 // few, because the accounts are worthless and tests create many
)

type accountInput struct {
	Name         string `json:"name"`
	Password     string `json:"password"`
	Grade        grade  `json:"grade"`
	MaxLength    *int   `json:"maxLength"`
	TokenSeconds *int   `json:"tokenSeconds"`
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

func (in accountInput) check() error {
	switch {
	case !nameForm.MatchString(in.Name):
		return refuse(422, "bad_name", "name must be 1 to 40 letters, digits, dots, dashes or underscores.")
	case len(in.Password) < 1 || len(in.Password) > 200:
		return refuse(422, "bad_password", "password must have 1 to 200 bytes.")
	case in.Grade.Explain() == "":
		return refuse(422, "bad_grade", "grade must be A, C or E.")
	case in.MaxLength != nil && (*in.MaxLength < 1 || *in.MaxLength > 100_000):
		return refuse(422, "bad_max_length", "maxLength must be 1 to 100000.")
	case in.TokenSeconds != nil && (*in.TokenSeconds < 1 || *in.TokenSeconds > 86400*365):
		return refuse(422, "bad_token_seconds", "tokenSeconds must be 1 to 31536000.")
	}
	return nil
}

// accounts provides the endpoints for accounts and their sessions.
type accounts struct{ *Platform }

func (p accounts) createAccount(c *call) (answer, error) {
	var in accountInput
	if err := decode(c.body, &in, "name", "password", "grade", "maxLength", "tokenSeconds"); err != nil {
		return answer{}, err
	}
	if err := in.check(); err != nil {
		return answer{}, err
	}
	if had := p.accountNamed(in.Name); had != nil {
		return p.sameAccount(c, had, in)
	}
	made := &account{
		ID: id.New[account](), Name: in.Name, Grade: in.Grade,
		MaxLength: defaultLength, TokenSeconds: defaultToken, Salt: []byte(rand.Text()),
	}
	if in.MaxLength != nil {
		made.MaxLength = *in.MaxLength
	}
	if in.TokenSeconds != nil {
		made.TokenSeconds = *in.TokenSeconds
	}
	hash, err := hashPassword(in.Password, made.Salt)
	if err != nil {
		return answer{}, err
	}
	made.Hash = hash
	p.mu.Lock()
	had := p.state.accounts[in.Name] // another request may have created it since the first check
	if had == nil {
		err = p.commit(record{Op: opAccount, Account: made})
	}
	p.mu.Unlock()
	if had != nil {
		return p.sameAccount(c, had, in)
	}
	return answer{status: http.StatusCreated, body: p.viewAccount(c.r, made)}, err
}

// sameAccount responds to a request to create an account that already exists. It returns a conflict
// if the input differs from the account. It never changes the account.
func (p accounts) sameAccount(c *call, had *account, in accountInput) (answer, error) {
	ok, err := had.hasPassword(in.Password)
	if err != nil {
		return answer{}, err
	}
	if !ok || had.Grade != in.Grade {
		return answer{}, refuse(http.StatusConflict, "name_taken", "This name is taken, with another password or grade.")
	}
	if in.MaxLength != nil && *in.MaxLength != had.MaxLength ||
		in.TokenSeconds != nil && *in.TokenSeconds != had.TokenSeconds {
		return answer{}, refuse(http.StatusConflict, "account_differs",
			"This account exists with another maxLength or tokenSeconds.")
	}
	return answer{status: http.StatusOK, body: p.viewAccount(c.r, had)}, nil
}

func hashPassword(password string, salt []byte) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, salt, passwordRounds, 32)
}

// hasPassword reports whether the password is correct. It is slow (PBKDF2), so call it without
// holding p.mu.
func (a *account) hasPassword(password string) (bool, error) {
	hash, err := hashPassword(password, a.Salt)
	return subtle.ConstantTimeCompare(hash, a.Hash) == 1, err
}

func (p accounts) accountNamed(name string) *account {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.accounts[name]
}

type accountView struct {
	ID        accountID `json:"id"`
	Name      string    `json:"name"`
	Grade     grade     `json:"grade"`
	MaxLength int       `json:"maxLength"`
	Picture   string    `json:"picture"`
}

func (p accounts) viewAccount(r *http.Request, a *account) accountView {
	return accountView{
		ID: a.ID, Name: a.Name, Grade: a.Grade, MaxLength: a.MaxLength,
		Picture: p.baseURL(r) + "picture/" + a.ID.String(),
	}
}

type sessionView struct {
	AccessToken  string      `json:"accessToken"`
	RefreshToken string      `json:"refreshToken"`
	ExpiresIn    int         `json:"expiresIn"` // seconds
	Account      accountView `json:"account"`
}

func (p accounts) signIn(c *call) (answer, error) {
	var in struct {
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	if err := decode(c.body, &in, "name", "password"); err != nil {
		return answer{}, err
	}
	wrong := refuse(http.StatusUnauthorized, "wrong_credentials", "The name or the password is wrong.")
	a := p.accountNamed(in.Name)
	if a == nil || len(in.Password) > 200 {
		return answer{}, wrong
	}
	ok, err := a.hasPassword(in.Password)
	if err != nil {
		return answer{}, err
	}
	if !ok {
		return answer{}, wrong
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startSession(c, a, "")
}

func (p accounts) refreshSession(c *call) (answer, error) {
	var in struct {
		RefreshToken string `json:"refreshToken"`
	}
	if err := decode(c.body, &in, "refreshToken"); err != nil {
		return answer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.state.refresh[hashToken(in.RefreshToken)]
	if old == nil || !old.Grant.IsZero() || !p.opts.Clock.Now().Before(old.RefreshUntil) {
		return answer{}, refuse(http.StatusUnauthorized, "refresh_token_invalid",
			"The refresh token is unknown, used or expired.")
	}
	return p.startSession(c, p.state.byID[old.Account], old.Refresh)
}

// startSession creates an access token and a refresh token and stores their hashes. The caller must
// hold p.mu.
func (p accounts) startSession(c *call, a *account, replaces string) (answer, error) {
	now := p.opts.Clock.Now()
	p.state.sweep(now)
	access, refresh := "sat_"+rand.Text(), "srt_"+rand.Text()
	s := &session{
		Account: a.ID, Access: hashToken(access), Refresh: hashToken(refresh), Replaces: replaces,
		Until: now.Add(time.Duration(a.TokenSeconds) * time.Second), RefreshUntil: now.Add(refreshLife),
	}
	if err := p.commit(record{Op: opSession, Session: s}); err != nil {
		return answer{}, err
	}
	view := sessionView{
		AccessToken: access, RefreshToken: refresh, ExpiresIn: a.TokenSeconds, Account: p.viewAccount(c.r, a),
	}
	return answer{status: http.StatusOK, body: view}, nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// authenticate sets a call's account and token hash based on its access token.
func (p *Platform) authenticate(c *call, e endpoint) error {
	scheme, token, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return refuse(http.StatusUnauthorized, "token_missing", "Send Authorization: Bearer <accessToken>.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.token = hashToken(token)
	s := p.state.access[c.token]
	if s == nil {
		return refuse(http.StatusUnauthorized, "token_invalid", "The access token is unknown.")
	}
	if !p.opts.Clock.Now().Before(s.Until) {
		return tokenExpired()
	}
	if !s.Grant.IsZero() {
		return oauth{p}.authenticateGrant(c, s, e)
	}
	c.account = p.state.byID[s.Account]
	if c.account == nil {
		return refuse(http.StatusUnauthorized, "token_invalid", "The access token is unknown.")
	}
	return nil
}

func tokenExpired() *refusal {
	return refuse(http.StatusUnauthorized, "token_expired", "The access token has expired; refresh the session.")
}

func (p accounts) me(c *call) (answer, error) {
	if _, err := query(c.r); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: p.viewAccount(c.r, c.account)}, nil
}
