// Package sandbox is the connector for the simulated platform in apps/sim/sandbox. It lets new
// users and tests work without an account on a real platform.
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"crier/publishing"
	"crier/publishing/connector"
)

const (
	maxLength = 500      // graphemes, unless the account has another limit
	maxMedia  = 4        // images and videos per post, combined
	maxAlt    = 1500     // characters
	maxImage  = 10 << 20 // bytes
	maxVideo  = 1 << 30  // bytes
)

// Config configures access to this instance's own sandbox.
type Config struct {
	// URL is the default service address in the connect form. It may be empty. Example:
	// http://127.0.0.1:4009
	URL string
	// HTTP is the client used for URL only. It can reach addresses that are blocked when users type
	// them in the form. If it is nil, the Env's or Session's client is used.
	HTTP connector.HTTP
}

// Connector publishes to a sandbox. It implements connector.Connector and connector.Refresher.
type Connector struct {
	url  string
	http connector.HTTP
}

// New returns a Connector. It does no I/O.
func New(cfg Config) *Connector { return &Connector{url: cfg.URL, http: cfg.HTTP} }

var (
	_ connector.Connector = (*Connector)(nil)
	_ connector.Refresher = (*Connector)(nil)
)

// Describe returns the descriptor. Its Grade is the default in the connect form. An account may
// instead have GradeMarked or GradeOpaque.
func (c *Connector) Describe() connector.Descriptor {
	return connector.Descriptor{
		ID: "sandbox", Name: "Sandbox", ToolTip: "A pretend platform: nothing leaves this instance.",
		Capabilities: []string{"text", "image", "video"},
		Fields: []connector.Field{
			{
				Key: "service", Label: "Address", DefaultValue: c.url, Type: "text",
				Validation: `^https?:\/\/[^\s\/@?#]+(\/[^\s?#]*)?$`, Hint: "Where the sandbox runs",
			},
			{
				Key: "name", Label: "Account name", Type: "text",
				Validation: `^[A-Za-z0-9][A-Za-z0-9_.\-]{0,39}$`, Hint: "Any name; a new name creates the account",
			},
			{
				Key: "password", Label: "Password", Type: "password",
				Validation: `^.{1,200}$`, Hint: "Any password; for an existing account, its password",
			},
			{
				Key: "grade", Label: "Grade", DefaultValue: "A", Type: "text",
				Validation: `^[ACE]$`, Hint: "A recognizes a repeated post, C can be read back, E cannot be queried",
			},
		},
		Editor: "normal", MaxLength: maxLength, Unit: connector.Graphemes,
		Media: connector.MediaRules{
			MaxImages: maxMedia, MaxVideos: maxMedia, Mixed: true, MaxImageBytes: maxImage, MaxVideoBytes: maxVideo,
		},
		Grade: publishing.GradeIdempotent, KeyOnly: true,
		Rules: "Plain text of up to 500 characters (an account may allow more or less) and up to 4 PNG, JPEG, GIF or " +
			"MP4 files. Threads are chains of replies. Nothing is really published.",
	}
}

// accountData is the content of Account.Data.
type accountData struct {
	MaxLength int `json:"maxLength"`
}

// Connect signs in and returns the account. If no account has the name given in the form, Connect
// creates one first. It returns KindContent if the sandbox rejects the form.
func (c *Connector) Connect(
	ctx context.Context, env connector.Env, fields map[string]string,
) (connector.Connected, error) {
	service, err := c.service(fields["service"])
	if err != nil {
		return connector.Connected{}, err
	}
	name, password, grade := fields["name"], fields["password"], fields["grade"]
	if name == "" || password == "" {
		return connector.Connected{}, &connector.Error{
			Kind: connector.KindContent, Public: "Enter an account name and a password.",
		}
	}
	if grade == "" {
		grade = string(publishing.GradeIdempotent)
	}
	cl := client{http: c.httpFor(service, env.HTTP), base: service}
	form := map[string]string{"name": name, "password": password, "grade": grade}
	if err := cl.post(ctx, "/api/accounts", form, nil); err != nil {
		return connector.Connected{}, refusedForm(err)
	}
	in, err := cl.signIn(ctx, name, password)
	if err != nil {
		return connector.Connected{}, refusedForm(err)
	}
	data, err := json.Marshal(accountData{MaxLength: in.Account.MaxLength})
	if err != nil {
		return connector.Connected{}, err
	}
	credential, err := json.Marshal(credential{
		Service: service, Name: name, Password: password, AccessToken: in.AccessToken, RefreshToken: in.RefreshToken,
	})
	account := connector.Account{
		ID: in.Account.ID, Name: in.Account.Name, Profile: in.Account.Name, Picture: in.Account.Picture,
		Data: data, Grade: publishing.Grade(in.Account.Grade), Destination: connector.Destination(service),
	}
	return connector.Connected{Account: account, Credential: credential}, err
}

// httpFor returns the connector's own client if service is this instance's sandbox. For any other
// address, it returns the guarded client.
func (c *Connector) httpFor(service string, guarded connector.HTTP) connector.HTTP {
	own, err := c.service("")
	if err != nil || own != service || c.http == nil {
		return guarded
	}
	return c.http
}

// service parses the address typed in the form. An empty address means this instance's sandbox.
func (c *Connector) service(typed string) (string, error) {
	if typed == "" {
		typed = c.url
	}
	u, err := url.Parse(strings.TrimRight(typed, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", &connector.Error{
			Kind: connector.KindContent, Public: "The address must look like http://127.0.0.1:4009.",
		}
	}
	return u.String(), nil
}

// refusedForm rewords an error's public message if the sandbox rejected the form. It returns any
// other error unchanged.
func refusedForm(err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return err
	}
	if connector.WrongAddress(err) {
		e.Kind = connector.KindContent
	}
	if e.Kind != connector.KindContent && e.Kind != connector.KindReauth || e.Status == 0 {
		return err
	}
	reason, known := map[string]string{
		"name_taken":        "the name is taken with another password or grade.",
		"wrong_credentials": "the name or the password is wrong.",
		"bad_name":          "a name has 1 to 40 letters, digits, dots, dashes or underscores.",
		"bad_password":      "a password has 1 to 200 bytes.",
		"bad_grade":         "the grade must be A, C or E.",
	}[e.Code]
	e.Public = "The sandbox refuses this account: " + reason
	if !known {
		e.Public = fmt.Sprintf("There is no sandbox at this address, or it refuses the account (status %d).", e.Status)
	}
	return e
}

// Validate applies the platform's rules and the account's own length limit.
func (c *Connector) Validate(draft connector.Draft) []connector.Problem {
	var data accountData
	if len(draft.Account.Data) > 0 && json.Unmarshal(draft.Account.Data, &data) != nil {
		// the descriptor's limit applies
		data = accountData{}
	}
	d := c.Describe()
	var out []connector.Problem
	for i, part := range draft.Parts {
		one := connector.Draft{Parts: []connector.DraftPart{part}}
		problems := append(connector.Check(d, one, data.MaxLength), check(part)...)
		for _, p := range problems {
			out = append(out, connector.Problem{Part: i, Message: p.Message})
		}
	}
	return out
}

// check applies the rules that cannot be expressed in a descriptor.
func check(part connector.DraftPart) []connector.Problem {
	var out []connector.Problem
	add := func(format string, args ...any) {
		out = append(out, connector.Problem{Message: fmt.Sprintf(format, args...)})
	}
	if images, videos := count(part.Media); images > 0 && videos > 0 && images+videos > maxMedia {
		add("Too many files: %d; Sandbox accepts at most %d.", images+videos, maxMedia)
	}
	for _, m := range part.Media {
		switch m.ContentType {
		case "image/png", "image/jpeg", "image/gif", "video/mp4":
		default:
			add("%s is %s; Sandbox accepts PNG, JPEG, GIF and MP4 files.", m.Name, m.ContentType)
		}
		if n := utf8.RuneCountInString(m.Alt); n > maxAlt {
			add("The alternative text of %s is too long: %d characters, and at most %d are allowed.", m.Name, n, maxAlt)
		}
	}
	return out
}

func count(media []connector.Media) (images, videos int) {
	for _, m := range media {
		if m.Video {
			videos++
		} else {
			images++
		}
	}
	return images, videos
}

// Refresh rotates the tokens. If the refresh token is no longer valid, Refresh signs in with the
// password and returns any error from the sign-in. A refresh token becomes invalid when it expires
// or is used, even if the response is lost.
func (c *Connector) Refresh(ctx context.Context, s *connector.Session) (connector.Refreshed, error) {
	cl, cred, err := c.open(s)
	if err != nil {
		return connector.Refreshed{}, err
	}
	in, err := cl.session(ctx, "/api/session/refresh", map[string]string{"refreshToken": cred.RefreshToken})
	if connector.KindOf(err, false) == connector.KindReauth {
		in, err = cl.signIn(ctx, cred.Name, cred.Password)
	}
	if err != nil {
		return connector.Refreshed{}, err
	}
	cred.AccessToken, cred.RefreshToken = in.AccessToken, in.RefreshToken
	raw, err := json.Marshal(cred)
	return connector.Refreshed{Credential: raw, Destination: connector.Destination(cred.Service)}, err
}

func (cl client) signIn(ctx context.Context, name, password string) (session, error) {
	return cl.session(ctx, "/api/session", map[string]string{"name": name, "password": password})
}

// session requests a session. It returns KindTransient if the response is incomplete.
func (cl client) session(ctx context.Context, path string, in map[string]string) (session, error) {
	var out session
	if err := cl.post(ctx, path, in, &out); err != nil {
		return out, err
	}
	a := out.Account
	if out.AccessToken == "" || out.RefreshToken == "" || a.ID == "" || !publishing.Grade(a.Grade).Valid() {
		return out, &connector.Error{
			Kind: connector.KindTransient, Status: http.StatusOK, Public: "The response does not come from a sandbox.",
		}
	}
	return out, nil
}
