package publishing

import (
	"time"

	"crier/tenancy"
)

// BeginConnect asks to connect an account of a platform. ReturnURL is stored as it is: the caller checks that it is no
// foreign address.
type BeginConnect struct {
	Connector string
	// Refresh is the id, or the account id on the platform, of an existing channel to reconnect; empty for a new one.
	Refresh    string
	ReturnURL  string
	Onboarding bool
	// OAuthOnly refuses platforms that are connected with a form.
	OAuthOnly bool
	// UnknownIsNotFound makes an unknown platform NotFound instead of Invalid, for routes that have it in their path.
	UnknownIsNotFound bool
}

// Authorized is the answer to BeginConnect over the public API. URL is empty when a channel of the platform is
// connected already and works.
type Authorized struct {
	URL string
}

// ChooseAccount chooses the account of a connect by OAuth. Channel is the id that the channel will have, State is used
// without a session.
type ChooseAccount struct {
	Channel   string
	State     string
	Candidate string
}

// Candidate is an account that a connect by OAuth gives access to.
type Candidate struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Picture string `json:"picture,omitempty"`
}

// ConnectRequest is a connect that was started and not finished: who asks for the account, and for
// which organization.
type ConnectRequest struct {
	Org tenancy.OrgID
	// Organization and Platform are names.
	Organization, Platform string
	// By is who started it, with the name used at that time.
	By tenancy.Principal
	// KeyName is the name of the API key of By, and KeyCreator the address of the member who made it; empty for none.
	KeyName, KeyCreator string
	// Candidates are the accounts to choose from. It is empty before the platform's code is
	// redeemed.
	Candidates []Candidate
	// ReturnURL is the return URL given to BeginConnect.
	ReturnURL string
}

// FinishConnect carries what the person or the platform sent back. Refresh has no effect: the state of the connect
// names the channel to reconnect.
type FinishConnect struct {
	Connector string
	State     string
	// Fields are the values of the connector's form by their key. A field that is missing has its default value.
	Fields map[string]string
	// Code is that of a connect by OAuth.
	Code string
	// Denied is what the platform sends instead of a Code when the person has not allowed the access.
	Denied string
	// Zone is the time zone of a new channel; the zero value means that of the organization.
	Zone    tenancy.ZoneRequest
	Refresh string
	// OwnState lets the account be chosen with a state that the person who started the connect does
	// not know.
	OwnState bool
}

// ChannelConnected is the answer to FinishConnect. Onboarding and ReturnURL are those of BeginConnect.
type ChannelConnected struct {
	Channel Channel
	// By is who started connecting it.
	By         tenancy.Principal
	Onboarding bool
	ReturnURL  string
	// Candidates are set when an account must be chosen. Channel then has only the ID that it will have, its Org, its
	// Connector, and a name. State chooses one.
	Candidates []Candidate
	State      string
	// Disown is a token that disconnects the channel until DisownUntil; empty while an account must be chosen.
	Disown      string
	DisownUntil time.Time
}

// Disowned is the result when the person who granted access to an account takes it back.
type Disowned struct {
	Org tenancy.OrgID `db:"-"`
	// Organization and Channel are names, Connector is the identifier of the platform.
	Organization string `db:"organization"`
	Channel      string `db:"channel"`
	Connector    string `db:"connector"`
	// Disconnected is true if this call disconnected the channel. It is false if the channel was
	// already disconnected, or if its account has been connected again since.
	Disconnected bool `db:"-"`
}
