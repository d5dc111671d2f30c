package publishing

import "crier/tenancy"

// BeginConnect asks to connect a channel of a connector.
type BeginConnect struct {
	Connector string
	// Refresh is the id, or the account id on the platform, of an existing channel to reconnect; empty for a new one.
	Refresh    string
	ReturnURL  string
	Onboarding bool
}

// FinishConnect carries what the person or the platform sent back.
type FinishConnect struct {
	Connector string
	State     string
	// Fields are the values of the connector's form by their key. A field that is missing has its default value.
	Fields map[string]string
	// Zone is the time zone of a new channel; the zero value means that of the organization.
	Zone    tenancy.ZoneRequest
	Refresh string
}

// ChannelConnected is the answer to FinishConnect.
type ChannelConnected struct {
	Channel    Channel
	Onboarding bool
	ReturnURL  string
}
