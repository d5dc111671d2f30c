package publishing

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
	// Code is, on platforms with a form, the base64 of a JSON object of the form's fields.
	Code string
	// Timezone is in the form that tenancy.ParseZone takes; empty means that of the organization.
	Timezone string
	Refresh  string
}

// ChannelConnected is the answer to FinishConnect.
type ChannelConnected struct {
	Channel    Channel
	Onboarding bool
	ReturnURL  string
}
