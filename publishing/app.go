package publishing

import "crier/platform/fault"

// AppSource says where a platform application comes from.
type AppSource string

// Application sources. AppNone means that no application is configured.
const (
	AppNone             AppSource = ""
	AppFromInstance     AppSource = "env"
	AppFromOrganization AppSource = "organization"
)

// PlatformApp is an organization's application for a family of platforms, without its secret.
type PlatformApp struct {
	// Family is the family's identifier, and Name is its display name.
	Family string
	Name   string
	// Platforms are the identifiers of the platforms that accept the application.
	Platforms []string
	Source    AppSource
	// ClientID is empty if there is no application.
	ClientID string
}

// SetPlatformApp replaces an organization's application for a family of platforms.
type SetPlatformApp struct {
	// Family is the identifier of the family or of one of its platforms.
	Family   string
	ClientID string
	Secret   string
}

// maxAppText is the maximum length of a client id or secret, in bytes.
const maxAppText = 1024

// Validate returns an Invalid fault that lists every invalid field.
func (c SetPlatformApp) Validate() error {
	var faults fault.List
	for name, text := range map[string]string{"credentials.clientId": c.ClientID, "credentials.clientSecret": c.Secret} {
		if text == "" || len(text) > maxAppText || !Storable(text) {
			faults.Add(name, "must be a string of 1 to 1024 bytes")
		}
	}
	return faults.Err("publishing.SetPlatformApp", "The credentials are not valid.")
}

// Platform describes a platform that this instance supports, as seen by one organization.
type Platform struct {
	ID   string
	Name string
	// Capabilities lists which of text, image and video the platform supports.
	Capabilities []string
	// Abilities are values of connector.Ability.
	Abilities []string
	// Authorized is set if accounts on the platform can be connected.
	Authorized bool
}
