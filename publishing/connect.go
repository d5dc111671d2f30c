package publishing

import (
	"time"

	"crier/tenancy"
)

// BeginConnect starts connecting an account on a platform. ReturnURL is stored unchanged, so the
// caller must check that it does not point to another site.
type BeginConnect struct {
	Connector string
	// Refresh identifies an existing channel to reconnect, either by the channel's id or by the
	// account's id on the platform. It is empty for a new channel.
	Refresh    string
	ReturnURL  string
	Onboarding bool
	// OAuthOnly rejects platforms whose accounts are connected with a form.
	OAuthOnly bool
	// UnknownIsNotFound makes an unknown platform a NotFound error instead of an Invalid one. It is
	// for routes whose path contains the platform.
	UnknownIsNotFound bool
}

// Authorized is the result of BeginConnect in the public API. URL is empty if a channel on the
// platform is already connected and working.
type Authorized struct {
	URL string
}

// ChooseAccount selects the account to connect after an OAuth authorization. Channel is the id that
// the new channel will have. State identifies the connection attempt if there is no session.
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

// ConnectRequest describes an unfinished connection attempt. It identifies who is requesting access
// to an account, and for which organization.
type ConnectRequest struct {
	Org tenancy.OrgID
	// Organization and Platform are names.
	Organization, Platform string
	// By identifies the person or key that started the attempt. It holds the name that the person
	// or key had at that time.
	By tenancy.Principal
	// KeyName is the name of the API key in By. KeyCreator is the email address of the member who
	// created that key. Both are empty if no API key was used.
	KeyName, KeyCreator string
	// Candidates are the accounts to choose from. The list is empty until the platform's
	// authorization code has been redeemed.
	Candidates []Candidate
	// ReturnURL is copied from BeginConnect.
	ReturnURL string
}

// FinishConnect carries the data sent by the user or the platform. Refresh has no effect, because
// the stored attempt already identifies the channel to reconnect.
type FinishConnect struct {
	Connector string
	State     string
	// Fields holds the values of the connector's form, keyed by field. A missing field has its
	// default value.
	Fields map[string]string
	// Code is the OAuth authorization code.
	Code string
	// Denied is the error that the platform sends instead of a code if the user denies access.
	// Example: access_denied
	Denied string
	// Zone is the time zone of a new channel. The zero value means the organization's zone.
	Zone    tenancy.ZoneRequest
	Refresh string
	// OwnState requests a new state for choosing the account. Whoever started the attempt does not
	// know the new state.
	OwnState bool
}

// ChannelConnected is the result of FinishConnect. Onboarding and ReturnURL are copied from
// BeginConnect.
type ChannelConnected struct {
	Channel Channel
	// By is who started the connection attempt.
	By         tenancy.Principal
	Onboarding bool
	ReturnURL  string
	// Candidates is set if an account must still be chosen. In that case, Channel has only its
	// future ID, its Org, its Connector and a name. Pass State to ChooseAccount.
	Candidates []Candidate
	State      string
	// Disown is a token that can be used to disconnect the channel until DisownUntil. It is empty
	// while an account must still be chosen.
	Disown      string
	DisownUntil time.Time
}

// Disowned is the result of disowning a channel. The person who granted access to an account can
// disown its channel to revoke that access.
type Disowned struct {
	Org tenancy.OrgID `db:"-"`
	// Organization and Channel are names. Connector is the identifier of the platform.
	Organization string `db:"organization"`
	Channel      string `db:"channel"`
	Connector    string `db:"connector"`
	// Disconnected is true if this call disconnected the channel. It is false if the channel had
	// already been disconnected, or if the account has since been connected again.
	Disconnected bool `db:"-"`
}
