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
	// Family returns the family of application credentials that the platform accepts, which never
	// changes.
	Family() Family
	// AuthorizeURL returns the URL of the platform's page on which a user grants access. It does no
	// I/O.
	AuthorizeURL(Authorization) (string, error)
	// Exchange redeems an authorization code. The engine calls it at most once per code.
	// KindContent means that the platform rejects the code, the verifier or the redirect URI;
	// KindOperator means that it rejects the application.
	Exchange(ctx context.Context, env Env, app App, code Code) (Authorized, error)
	// Select returns the account for one of the candidates from Exchange. credential is the
	// Credential returned by Exchange. KindContent means that there is no such candidate. Select
	// can be repeated.
	Select(ctx context.Context, env Env, app App, credential json.RawMessage, candidate string) (Connected, error)
}

// Family identifies application credentials that several platforms can share, as Facebook and
// Instagram do.
type Family struct {
	// ID is in lower case with dashes, as in the API. In upper case with underscores, it is the
	// prefix of the environment variables that hold this instance's application credentials.
	// Example: sandbox-oauth
	ID string
	// Name is shown to users.
	Name string
}

// App is this service's registration with a platform. The zero value means that there is none.
type App struct {
	ClientID string
	Secret   string
}

// Authorization is the input of AuthorizeURL.
type Authorization struct {
	App App
	// RedirectURI is where the platform sends the browser afterwards. It must be registered with
	// the platform.
	RedirectURI string
	// State is returned by the platform along with the code.
	State string
	// Challenge is the PKCE code challenge (RFC 7636), made with the S256 method.
	Challenge string
}

// Code is an authorization code from the platform, with the proof that the code was issued to us.
type Code struct {
	Code string
	// Verifier is the PKCE verifier that matches the Challenge of the Authorization.
	Verifier string
	// RedirectURI equals Authorization.RedirectURI.
	RedirectURI string
}

// Authorized is the result of Exchange: either an account or a list of candidates for the user to
// choose from.
type Authorized struct {
	// Missing names the permissions that the connector needs but the user did not grant, in words
	// for users. If it is not empty, the other fields are ignored.
	Missing []string
	// Connected is the account if the platform offers no choice; nil if there are Candidates.
	Connected *Connected
	// Candidates are the accounts, such as pages, that Select accepts. At most maxCandidates are
	// used.
	Candidates []Candidate
	// Credential is the credential to pass to Select, of at most 16 KB. The engine seals it, and
	// deletes it once the user has chosen.
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

// ToolBox is a connector with tools: small platform queries that help users write a post, such as a
// board search. Only the listed tools can be called.
type ToolBox interface {
	// Tools returns the list of tools, which never changes.
	Tools() []Tool
	// Call runs a tool and returns a JSON document of at most 256 KB. data contains all required
	// fields and no undeclared ones, all with the declared types. Call changes nothing on the
	// platform. KindContent means that data is invalid.
	Call(ctx context.Context, s *Session, name string, data map[string]any) (json.RawMessage, error)
}

// Tool is one tool of a ToolBox.
type Tool struct {
	Name        string
	Description string
	Data        []ToolField
}

// ToolField is one member of a tool's data.
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
	// Channel returns the account's series for the days from since to until, inclusive.
	Channel(ctx context.Context, s *Session, since, until time.Time) ([]Series, error)
	// Post returns the series for one published part. An error with status 404 or 410 means that
	// the platform no longer has the part.
	Post(ctx context.Context, s *Session, ref Ref, since, until time.Time) ([]Series, error)
}

// Series is one statistic, with at most one point per day.
type Series struct {
	// Label is shown to users.
	Label string
	// Level is true for a value at the end of a day, such as the number of followers, and false for
	// a count over the day.
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

// The abilities. A connector has an ability if it implements the corresponding interface, so a list
// of abilities is never wrong.
const (
	AbilityOAuth     Ability = "oauth"
	AbilityRefresh   Ability = "refresh"
	AbilityAnalytics Ability = "analytics"
	AbilityTools     Ability = "tools"
	AbilityList      Ability = "list"
)

// Abilities returns a connector's abilities in the order of the constants.
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
