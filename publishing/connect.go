package publishing

import (
	"time"

	"crier/tenancy"
)

// BeginConnect starts connecting an account on a platform. ReturnURL is stored unchanged, so the
// caller must check that it does not lead to a foreign site.
type BeginConnect struct {
	Connector string
	// Refresh is the id of an existing channel to reconnect, or its account id on the platform. It
	// is empty for a new channel.
	Refresh    string
	ReturnURL  string
	Onboarding bool
	// OAuthOnly rejects platforms that are connected with a form.
	OAuthOnly bool
	// UnknownIsNotFound reports an unknown platform as NotFound instead of Invalid. It is for
	// routes that have the platform in their path.
	UnknownIsNotFound bool
}

// Authorized is the result of BeginConnect for the public API. URL is empty if a channel of the
// platform is already connected and working.
type Authorized struct {
	URL string
}

// ChooseAccount chooses which account to connect after an OAuth authorization. Channel is the id
// that the channel will have. State is used if there is no session.
type ChooseAccount struct {
	Channel   string
	State     string
	Candidate string
}

// Candidate is an account that an OAuth authorization gives access to.
type Candidate struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Picture string `json:"picture,omitempty"`
}

// ConnectRequest is a connection attempt that has started but not finished: who is requesting an
// account, and for which organization.
type ConnectRequest struct {
	Org tenancy.OrgID
	// Organization and Platform are names.
	Organization, Platform string
	// By is who started the attempt, with the name they had at that time.
	By tenancy.Principal
	// KeyName is the name of By's API key. KeyCreator is the email address of the member who
	// created the key. Both are empty if no key was used.
	KeyName, KeyCreator string
	// Candidates are the accounts to choose from. The list is empty until the platform's code is
	// redeemed.
	Candidates []Candidate
	// ReturnURL is the return URL given to BeginConnect.
	ReturnURL string
}

// FinishConnect carries what the person or the platform sent back. Refresh has no effect, because
// the stored attempt already names the channel to reconnect.
type FinishConnect struct {
	Connector string
	State     string
	// Fields holds the values of the connector's form, by field key. A missing field has its
	// default value.
	Fields map[string]string
	// Code is the OAuth authorization code.
	Code string
	// Denied is what the platform sends instead of a code if the person denies access. Example:
	// access_denied
	Denied string
	// Zone is the time zone of a new channel. The zero value means the organization's zone.
	Zone    tenancy.ZoneRequest
	Refresh string
	// OwnState makes FinishConnect issue a new state for choosing the account. The person who
	// started the attempt does not know this state.
	OwnState bool
}

// ChannelConnected is the result of FinishConnect. Onboarding and ReturnURL come from BeginConnect.
type ChannelConnected struct {
	Channel Channel
	// By is who started the connection attempt.
	By         tenancy.Principal
	Onboarding bool
	ReturnURL  string
	// Candidates is set if an account must be chosen. In that case, Channel has only its future ID,
	// its Org, its Connector and a name, and State must be passed to ChooseAccount.
	Candidates []Candidate
	State      string
	// Disown is a token that can disconnect the channel until DisownUntil. It is empty while an
	// account must be chosen.
	Disown      string
	DisownUntil time.Time
}

// Disowned is the result when the person who granted access to an account revokes it.
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
