package connector

import (
	"context"
	"encoding/json"
	"time"
)

// Authorizer is a connector whose accounts are connected by OAuth 2: a person grants access on a
// page of the platform, which sends the browser back with a code. An Authorizer has no form: its
// Descriptor has no Fields, and its Connect returns KindContent.
type Authorizer interface {
	// Family returns the family of application credentials that the platform accepts. It never
	// changes.
	Family() Family
	// AuthorizeURL returns the address of the platform's page where a person grants access. It does
	// no I/O.
	AuthorizeURL(Authorization) (string, error)
	// Exchange redeems the code of an Authorization, at most once. KindContent means that the
	// platform rejects the code, the verifier or the redirect address, and KindOperator that it
	// rejects the application.
	Exchange(ctx context.Context, env Env, app App, code Code) (Authorized, error)
	// Select returns the account of one of the candidates from Exchange. credential is the
	// Credential that Exchange returned. KindContent means that there is no such candidate. Select
	// may be repeated.
	Select(ctx context.Context, env Env, app App, credential json.RawMessage, candidate string) (Connected, error)
}

// Family identifies application credentials that several platforms may share, as Facebook and
// Instagram do.
type Family struct {
	// ID is in lower case with dashes, as in the API. In upper case, with underscores, it is the
	// prefix of the variables that hold the instance's application. Example: sandbox-oauth
	ID string
	// Name is shown to users.
	Name string
}

// App is the registration of this service with a platform. The zero value means none.
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
	// Challenge is the PKCE code challenge (RFC 7636), by the method S256.
	Challenge string
}

// Code is a code from the platform, with the proof that it was issued to us.
type Code struct {
	Code string
	// Verifier is the PKCE verifier that matches the Challenge of the Authorization.
	Verifier string
	// RedirectURI is the same as in the Authorization.
	RedirectURI string
}

// Authorized is the result of Exchange: either an account, or candidates from which a person
// chooses one.
type Authorized struct {
	// Missing lists the permissions that the connector needs and the person did not grant, in words
	// for users. If it is not empty, the other fields are ignored.
	Missing []string
	// Connected is the account on a platform that offers no choice; nil if there are Candidates.
	Connected *Connected
	// Candidates are the accounts, such as pages, that Select accepts. At most maxCandidates are
	// used.
	Candidates []Candidate
	// Credential is the credential for Select, of at most 16 KB. The engine seals it, and deletes
	// it once the person has chosen.
	Credential json.RawMessage
}

// Candidate is an account that can be chosen.
type Candidate struct {
	// ID equals the Account.ID of the account that Select returns for this candidate.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Picture is an http or https URL; it may be empty.
	Picture string `json:"picture,omitempty"`
}

// ToolBox is a connector with tools: small queries to a platform that help to write a post, such as
// a search for boards. Only the listed tools can be called.
type ToolBox interface {
	// Tools returns the tools. They never change.
	Tools() []Tool
	// Call runs a tool and returns a JSON document of at most 256 KB. data contains only fields
	// that the Tool declares, with the declared types, and all required ones. Call changes nothing
	// on the platform. KindContent means that the data is invalid.
	Call(ctx context.Context, s *Session, name string, data map[string]any) (json.RawMessage, error)
}

// Tool is one tool of a ToolBox.
type Tool struct {
	Name        string
	Description string
	Data        []ToolField
}

// ToolField is one member of the data of a Tool.
type ToolField struct {
	Key string
	// Type is string, number or boolean.
	Type        string
	Description string
	Required    bool
}

// Lister is a connector that can list recent posts of an account, whether this service or somebody
// else published them.
type Lister interface {
	// Recent returns at most limit items, newest first.
	Recent(ctx context.Context, s *Session, limit int) ([]RemoteItem, error)
}

// RemoteItem is a published item on a platform.
type RemoteItem struct {
	ID  string
	URL string
}

// Analyst is a connector that returns statistics of an account and of its posts.
type Analyst interface {
	// Channel returns the series of the account for the days from since to until, both inclusive.
	Channel(ctx context.Context, s *Session, since, until time.Time) ([]Series, error)
	// Post returns the series of one published part. An error with status 404 or 410 means that the
	// platform no longer has it.
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

// Point is the value of one day.
type Point struct {
	// Day is midnight in UTC.
	Day   time.Time
	Value float64
}

// Ability is something that a connector can do besides publishing.
type Ability string

// The abilities. A connector has an ability if it implements the interface for it, so a list of
// abilities is never wrong.
const (
	AbilityOAuth     Ability = "oauth"
	AbilityRefresh   Ability = "refresh"
	AbilityAnalytics Ability = "analytics"
	AbilityTools     Ability = "tools"
	AbilityList      Ability = "list"
)

// Abilities returns what a connector can do besides publishing, in the order of the constants.
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
