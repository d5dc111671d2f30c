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

// ConnectRequest is a connect that was begun and is not finished: who asks for the account, and for which organization.
type ConnectRequest struct {
	Org tenancy.OrgID
	// Organization is the name of the organization, Platform that of the platform.
	Organization, Platform string
	// By is who began it, as they were called then.
	By tenancy.Principal
	// KeyName is the name of the API key of By, and KeyCreator the address of the member who made it; empty for none.
	KeyName, KeyCreator string
	// Candidates are the accounts to choose from, none before the code of the platform is redeemed.
	Candidates []Candidate
	// ReturnURL is that of BeginConnect.
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
	// OwnState lets the account be chosen with a state that who began the connect does not know.
	OwnState bool
}

// ChannelConnected is the answer to FinishConnect. Onboarding and ReturnURL are those of BeginConnect.
type ChannelConnected struct {
	Channel Channel
	// By is who began to connect it.
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

// Disowned is the answer to whoever gave access to an account and takes it back.
type Disowned struct {
	Org tenancy.OrgID `db:"-"`
	// Organization and Channel are names, Connector is the identifier of the platform.
	Organization string `db:"organization"`
	Channel      string `db:"channel"`
	Connector    string `db:"connector"`
	// Disconnected is set if the channel was disconnected now. It is false if that was done before, or if its account was
	// connected again since.
	Disconnected bool `db:"-"`
}
