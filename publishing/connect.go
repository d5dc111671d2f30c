package publishing

// BeginConnect asks to connect a channel of a connector.
type BeginConnect struct {
	Connector  string
	Refresh    string // id (or platform account id) of an existing channel to reconnect, empty for a new one
	ReturnURL  string
	Onboarding bool
}

// FinishConnect brings what the person or the platform sent back.
type FinishConnect struct {
	Connector string
	State     string
	Code      string // credential platforms: base64 of a JSON object of the form's fields
	Timezone  string // as tenancy.ParseZone reads it; empty for the organization's
	Refresh   string
}

// ChannelConnected is the answer to FinishConnect.
type ChannelConnected struct {
	Channel    Channel
	Onboarding bool
	ReturnURL  string
}
