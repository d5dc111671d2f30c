package publishing

import (
	"time"

	"crier/tenancy"
)

// BeginConnect asks to connect an account of a platform. ReturnURL is stored unchanged, so the
// caller must check that it does not lead to a foreign site.
type BeginConnect struct {
	Connector string
	// Refresh is the id of an existing channel to reconnect, or its account id on the platform. It
	// is empty for a new channel.
	Refresh    string
	ReturnURL  string
	Onboarding bool
	// OAuthOnly refuses platforms that are connected with a form.
	OAuthOnly bool
	// UnknownIsNotFound makes an unknown platform NotFound instead of Invalid, for routes with the
	// platform in their path.
	UnknownIsNotFound bool
}

// Authorized is the result of BeginConnect for the public API. URL is empty if a channel of the
// platform is already connected and works.
type Authorized struct {
	URL string
}

// ChooseAccount chooses the account of a connect by OAuth. Channel is the id that the channel will
// have. State is used if there is no session.
type ChooseAccount struct {
	Channel   string
	State     string
	Candidate string
}

// Candidate is an account to which a connect by OAuth gives access.
type Candidate struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Picture string `json:"picture,omitempty"`
}

// ConnectRequest is a connect that was started but not finished: who asks for the account, and for
// which organization.
type ConnectRequest struct {
	Org tenancy.OrgID
	// Organization and Platform are names.
	Organization, Platform string
	// By is who started it, with the name used at that time.
	By tenancy.Principal
	// KeyName is the name of By's API key, and KeyCreator the address of the member who created it.
	// Both are empty without a key.
	KeyName, KeyCreator string
	// Candidates are the accounts to choose from. The list is empty until the platform's code is
	// redeemed.
	Candidates []Candidate
	// ReturnURL is the return URL given to BeginConnect.
	ReturnURL string
}

// FinishConnect carries what the person or the platform sent back. Refresh has no effect: the state
// of the connect names the channel to reconnect.
type FinishConnect struct {
	Connector string
	State     string
	// Fields are the values of the connector's form by key. A missing field has its default value.
	Fields map[string]string
	// Code is the authorization code of a connect by OAuth.
	Code string
	// Denied is what the platform sends instead of a Code if the person refuses access.
	Denied string
	// Zone is the time zone of a new channel. The zero value means the zone of the organization.
	Zone    tenancy.ZoneRequest
	Refresh string
	// OwnState lets the account be chosen with a state that the person who started the connect does
	// not know.
	OwnState bool
}

// ChannelConnected is the result of FinishConnect. Onboarding and ReturnURL come from BeginConnect.
type ChannelConnected struct {
	Channel Channel
	// By is who started the connect.
	By         tenancy.Principal
	Onboarding bool
	ReturnURL  string
	// Candidates is set if an account must be chosen. Channel then has only its future ID, its Org,
	// its Connector and a name. ChooseAccount takes State.
	Candidates []Candidate
	State      string
	// Disown is a token that can disconnect the channel until DisownUntil. It is empty while an
	// account must be chosen.
	Disown      string
	DisownUntil time.Time
}

// Disowned is the result when the person who granted access to an account takes it back.
type Disowned struct {
	Org tenancy.OrgID `db:"-"`
	// Organization and Channel are names. Connector is the identifier of the platform.
	Organization string `db:"organization"`
	Channel      string `db:"channel"`
	Connector    string `db:"connector"`
	// Disconnected is true if this call disconnected the channel. It is false if the channel was
	// already disconnected, or if its account has been connected again since.
	Disconnected bool `db:"-"`
}
