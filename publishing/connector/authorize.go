package connector

import (
	"context"
	"encoding/json"
	"time"
)

// Authorizer is a connector whose accounts are connected by OAuth 2: a person allows the access on a page of the
// platform, which sends the browser back with a code. Such a connector has no form: its Descriptor has no Fields, and
// its Connect returns an error of KindContent.
type Authorizer interface {
	// Family returns the family of application credentials that the platform takes. It is constant.
	Family() Family
	// AuthorizeURL returns the address of the platform at which a person allows the access. It does no I/O.
	AuthorizeURL(Authorization) (string, error)
	// Exchange redeems the code of an allowed Authorization, at most once. An error of KindContent means that the code,
	// the verifier or the redirect address is refused, KindOperator that the platform refuses the application.
	Exchange(ctx context.Context, env Env, app App, code Code) (Authorized, error)
	// Select returns one of the candidates of Exchange as an account. credential is that of the result of Exchange. An
	// error of KindContent means that the candidate is not offered. Select may be repeated.
	Select(ctx context.Context, env Env, app App, credential json.RawMessage, candidate string) (Connected, error)
}

// Family names the applications that several platforms may share, such as Facebook and Instagram.
type Family struct {
	// ID is in lower case with dashes, as in the API. In upper case, with underscores, it begins the names of the
	// variables of the instance's application.
	ID string
	// Name is shown to users.
	Name string
}

// App is the registration of this service at a platform. The zero value is none.
type App struct {
	ClientID string
	Secret   string
}

// Authorization is what AuthorizeURL needs.
type Authorization struct {
	App App
	// RedirectURI is where the platform sends the browser. It must be registered with the platform.
	RedirectURI string
	// State is returned by the platform with the code.
	State string
	// Challenge is the code challenge of PKCE (RFC 7636) by the method S256.
	Challenge string
}

// Code is a code that the platform has sent, with what proves that it was sent to us.
type Code struct {
	Code string
	// Verifier is that of the Challenge.
	Verifier string
	// RedirectURI is that of the Authorization.
	RedirectURI string
}

// Authorized is the result of Exchange: an account, or candidates of which a person chooses one.
type Authorized struct {
	// Missing are the permissions that the person did not give and without which the connector does not work, as words
	// for users. If there are any, the other fields are ignored.
	Missing []string
	// Connected is the account on a platform without a choice; nil where there are Candidates.
	Connected *Connected
	// Candidates are the accounts, such as pages, that Select takes. At most maxCandidates are used.
	Candidates []Candidate
	// Credential is the access for Select, of at most 16 KB. The engine seals it and deletes it after the choice.
	Credential json.RawMessage
}

// Candidate is an account that can be chosen.
type Candidate struct {
	// ID is equal to Account.ID of the account that Select returns for it.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Picture is an http or https URL; it may be empty.
	Picture string `json:"picture,omitempty"`
}

// ToolBox is a connector with tools: small queries of a platform that help to write a post, such as a search for
// boards. Only the listed tools can be called.
type ToolBox interface {
	// Tools returns the tools. They are constant.
	Tools() []Tool
	// Call runs a tool and returns a JSON document of at most 256 KB. data has only fields that the Tool declares, all
	// of those that it requires, and each of its type. Call changes nothing on the platform. An error of KindContent
	// means that the data is refused.
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

// Lister is a connector that can list what was recently published to an account, by this service or by others.
type Lister interface {
	// Recent returns at most limit items, the newest first.
	Recent(ctx context.Context, s *Session, limit int) ([]RemoteItem, error)
}

// RemoteItem is a published item on a platform.
type RemoteItem struct {
	ID  string
	URL string
}

// Analyst is a connector that returns statistics of an account and of its posts.
type Analyst interface {
	// Channel returns the series of the account for the days from since until until, both inclusive.
	Channel(ctx context.Context, s *Session, since, until time.Time) ([]Series, error)
	// Post returns the series of one published part. An error with the status 404 or 410 means that the platform no longer
	// has it.
	Post(ctx context.Context, s *Session, ref Ref, since, until time.Time) ([]Series, error)
}

// Series is one statistic, with at most one point for a day.
type Series struct {
	// Label is shown to users.
	Label string
	// Level is true for a value at the end of a day, such as followers, and false for a count of the day.
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

// The abilities. A connector has those whose interface it implements, so that a list of them is never wrong.
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
