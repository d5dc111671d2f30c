package connector

import (
	"context"
	"encoding/json"
	"time"
)

// Authorizer is a connector whose accounts are connected by OAuth 2: a user grants access on the
// platform's website, which redirects the browser back with a code. An Authorizer has no connect
// form: its Descriptor has no Fields, and its Connect returns KindContent.
type Authorizer interface {
	// Family returns the family of application credentials that the platform accepts. The result
	// never changes.
	Family() Family
	// AuthorizeURL returns the URL of the platform's consent page. It does no I/O.
	AuthorizeURL(Authorization) (string, error)
	// Exchange redeems an authorization code. The engine calls it at most once per code. If the
	// platform rejects the code, the verifier or the redirect URI, Exchange returns KindContent. If
	// the platform rejects the application credentials, Exchange returns KindOperator.
	Exchange(ctx context.Context, env Env, app App, code Code) (Authorized, error)
	// Select returns the account for one of the candidates from Exchange. credential is the
	// Credential that Exchange returned. Select returns KindContent if there is no such candidate.
	// It may be called more than once.
	Select(ctx context.Context, env Env, app App, credential json.RawMessage, candidate string) (Connected, error)
}

// Family identifies application credentials that several platforms can share, as Facebook and
// Instagram do.
type Family struct {
	// ID is the identifier used in the API, in lower case with dashes. In upper case with
	// underscores, it becomes the prefix of the environment variables that hold this instance's
	// application credentials. Example: sandbox-oauth
	ID string
	// Name is shown to users.
	Name string
}

// App holds the credentials of the application that this service has registered with a platform.
// The zero value means that no application is registered.
type App struct {
	ClientID string
	Secret   string
}

// Authorization is the input of AuthorizeURL.
type Authorization struct {
	App App
	// RedirectURI is the URL to which the platform redirects the browser after consent. It must be
	// registered with the platform.
	RedirectURI string
	// State is a value that the platform returns along with the code.
	State string
	// Challenge is the PKCE code challenge (RFC 7636), created with the S256 method.
	Challenge string
}

// Code is an authorization code from the platform, together with the values needed to redeem it.
type Code struct {
	Code string
	// Verifier is the PKCE verifier that matches Authorization.Challenge.
	Verifier string
	// RedirectURI equals Authorization.RedirectURI.
	RedirectURI string
}

// Authorized is the result of Exchange: either an account or a list of candidates for the user to
// choose from.
type Authorized struct {
	// Missing lists the permissions that the connector needs but the user did not grant, in the
	// words shown to users. If Missing is not empty, the other fields are ignored.
	Missing []string
	// Connected is the account, if the platform offers no choice. It is nil if there are
	// Candidates.
	Connected *Connected
	// Candidates are the accounts, such as pages, that can be passed to Select. Candidates beyond
	// maxCandidates are ignored.
	Candidates []Candidate
	// Credential is the credential to pass to Select. It is at most 16 KB. The engine stores it
	// encrypted and deletes it once the user has chosen a candidate.
	Credential json.RawMessage
}

// Candidate is an account that can be chosen.
type Candidate struct {
	// ID equals the Account.ID that Select returns for this candidate.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Picture is an http or https URL; it may be empty.
	Picture string `json:"picture,omitempty"`
}

// ToolBox is a connector that offers tools. A tool is a small platform query, such as a board
// search, that helps users write a post. Only the tools returned by Tools can be called.
type ToolBox interface {
	// Tools returns the list of tools. The list never changes.
	Tools() []Tool
	// Call runs a tool and returns a JSON document of at most 256 KB. The caller must ensure that
	// data contains all required fields, no undeclared fields, and only values of the declared
	// types. Call changes nothing on the platform. It returns KindContent if data is invalid.
	Call(ctx context.Context, s *Session, name string, data map[string]any) (json.RawMessage, error)
}

// Tool is one tool of a ToolBox.
type Tool struct {
	Name        string
	Description string
	Data        []ToolField
}

// ToolField describes one field of the data passed to a tool.
type ToolField struct {
	Key string
	// Type is string, number or boolean.
	Type        string
	Description string
	Required    bool
}

// Lister is a connector that can list an account's recent posts, whether or not this service
// published them.
type Lister interface {
	// Recent returns at most limit items, newest first.
	Recent(ctx context.Context, s *Session, limit int) ([]RemoteItem, error)
}

// RemoteItem is a published item on a platform.
type RemoteItem struct {
	ID  string
	URL string
}

// Analyst is a connector that returns statistics for an account and its posts.
type Analyst interface {
	// Channel returns the account's statistics for each day from since to until, inclusive.
	Channel(ctx context.Context, s *Session, since, until time.Time) ([]Series, error)
	// Post returns the statistics for one published part. An error with status 404 or 410 means
	// that the platform no longer has the part.
	Post(ctx context.Context, s *Session, ref Ref, since, until time.Time) ([]Series, error)
}

// Series holds the values of one statistic, with at most one point per day.
type Series struct {
	// Label is shown to users.
	Label string
	// Level is true if each value is a level at the end of a day, such as the number of followers.
	// It is false if each value is a count over a day.
	Level  bool
	Points []Point
}

// Point is the value for one day.
type Point struct {
	// Day is midnight in UTC.
	Day   time.Time
	Value float64
}

// Ability is something that a connector can do besides publishing.
type Ability string

// Connector abilities. Abilities derives a connector's abilities from the interfaces it implements,
// so they cannot get out of sync with the code.
const (
	AbilityOAuth     Ability = "oauth"
	AbilityRefresh   Ability = "refresh"
	AbilityAnalytics Ability = "analytics"
	AbilityTools     Ability = "tools"
	AbilityList      Ability = "list"
)

// Abilities returns a connector's abilities in the order in which the constants are declared.
func Abilities(c Connector) []Ability {
	out := []Ability{}
	add := func(a Ability, has bool) {
		if has {
			out = append(out, a)
		}
	}
	inner := unguarded(c)
	_, authorizer := inner.(Authorizer)
	_, refresher := inner.(Refresher)
	_, analyst := inner.(Analyst)
	_, tools := inner.(ToolBox)
	_, lister := inner.(Lister)
	add(AbilityOAuth, authorizer)
	add(AbilityRefresh, refresher)
	add(AbilityAnalytics, analyst)
	add(AbilityTools, tools)
	add(AbilityList, lister)
	return out
}
