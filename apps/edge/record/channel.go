package record

import (
	"crier/publishing"
)

// Channel is a connected account, without its credentials.
type Channel struct {
	ID                 string    `json:"id" doc:"Channel id; use it as integration.id in requests."`
	Name               string    `json:"name" doc:"Name of the account, or the name that members gave the channel."`
	Identifier         string    `json:"identifier" doc:"Platform id, in lower case."`
	ProviderIdentifier string    `json:"providerIdentifier" doc:"Same as identifier."`
	Picture            string    `json:"picture,omitempty" doc:"URL of the profile picture."`
	Profile            string    `json:"profile" doc:"Handle on the platform."`
	Disabled           bool      `json:"disabled" doc:"Whether the channel is disabled. A disabled channel publishes nothing."`
	Customer           *Customer `json:"customer,omitempty" doc:"The channel group."`
	RefreshNeeded      bool      `json:"refreshNeeded" doc:"Whether the channel must be reconnected before it can publish."`
	RefreshReason      string    `json:"refreshReason,omitempty" doc:"Why the channel must be reconnected."`
}

// Customer is a channel group.
type Customer struct {
	ID   string `json:"id" doc:"Id of the group."`
	Name string `json:"name" doc:"Name of the group."`
}

// ChannelRecord returns the JSON record of a channel.
func ChannelRecord(c publishing.Channel) Channel {
	out := Channel{
		ID: c.ID.String(), Name: c.Name, Identifier: c.Connector, ProviderIdentifier: c.Connector,
		Picture: c.Picture, Profile: c.Profile, Disabled: c.Disabled, RefreshNeeded: c.RefreshNeeded,
		RefreshReason: c.RefreshReason,
	}
	if c.Customer != nil {
		out.Customer = &Customer{ID: c.Customer.ID.String(), Name: c.Customer.Name}
	}
	return out
}
