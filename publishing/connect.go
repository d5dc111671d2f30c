package publishing

import "crier/tenancy"

// BeginConnect asks to connect an account of a platform. ReturnURL is stored as it is: the caller checks that it is no
// foreign address.
type BeginConnect struct {
	Connector string
	// Refresh is the id, or the account id on the platform, of an existing channel to reconnect; empty for a new one.
	Refresh    string
	ReturnURL  string
	Onboarding bool
}

// FinishConnect carries what the person or the platform sent back. Refresh has no effect: the state of the connect
// names the channel to reconnect.
type FinishConnect struct {
	Connector string
	State     string
	// Fields are the values of the connector's form by their key. A field that is missing has its default value.
	Fields map[string]string
	// Zone is the time zone of a new channel; the zero value means that of the organization.
	Zone    tenancy.ZoneRequest
	Refresh string
}

// ChannelConnected is the answer to FinishConnect. Onboarding and ReturnURL are those of BeginConnect.
type ChannelConnected struct {
	Channel Channel
	// By is who began to connect it; zero when that account is gone.
	By         tenancy.PersonID
	Onboarding bool
	ReturnURL  string
}
