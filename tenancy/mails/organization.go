package mails

import (
	"fmt"
	"time"

	"crier/platform/mail"
)

// Placeholders for empty names.
const (
	someOrganization = "an organization"
	someone          = "Someone"
	someKey          = "(unnamed)"
	someRole         = "member"
)

// Invitation returns a message that invites somebody, who may not have an account, to join an
// organization.
func (i Instance) Invitation(to, organization, inviter, role, link string, expires time.Time) mail.Message {
	org := quoted(organization, someOrganization)
	return i.message(content{
		To:      to,
		Subject: fmt.Sprintf("Invitation to %s at %s", org, i.Name),
		Paragraphs: []string{
			fmt.Sprintf("%s has invited you to join %s at %s with the role %s.",
				quoted(inviter, someone), org, i.Name, roleName(role)),
			fmt.Sprintf("The invitation is valid until %s.", i.at(expires)),
		},
		Buttons: []button{{Label: "View the invitation", URL: link}},
		Notes: []string{
			"If you do not know the sender, ignore this message. You will not join the organization unless you use " +
				"the link.",
		},
		Reason: "You are receiving this message because a member of an organization entered your email address.",
	})
}

// KeyCreated returns a message that tells an owner that their organization has a new API key.
func (i Instance) KeyCreated(to, organization, key, by string, when time.Time) mail.Message {
	return i.key(to, organization, key, by, "created", when)
}

// KeyRotated returns a message that tells an owner that an API key has a new secret.
func (i Instance) KeyRotated(to, organization, key, by string, when time.Time) mail.Message {
	return i.key(to, organization, key, by, "rotated", when)
}

// KeyRevoked returns a message that tells an owner that an API key is no longer valid.
func (i Instance) KeyRevoked(to, organization, key, by string, when time.Time) mail.Message {
	return i.key(to, organization, key, by, "revoked", when)
}

func (i Instance) key(to, organization, key, by, done string, when time.Time) mail.Message {
	org := quoted(organization, someOrganization)
	return i.message(content{
		To:      to,
		Subject: fmt.Sprintf("API key %s in %s", done, org),
		Paragraphs: []string{
			fmt.Sprintf("The API key %s in %s was %s by %s on %s.",
				quoted(key, someKey), org, done, quoted(by, someone), i.at(when)),
			"If you did not expect this, log in and check the API keys in the organization's settings. Revoke any " +
				"key that you do not recognize.",
		},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because you manage this organization.",
	})
}

// ChannelDisowned returns a message that tells an administrator that a channel was disconnected
// because the person who granted access to the channel's account withdrew that access.
func (i Instance) ChannelDisowned(to, organization, channel string, when time.Time) mail.Message {
	org := quoted(organization, someOrganization)
	return i.message(content{
		To:      to,
		Subject: "A channel in " + org + " was disconnected",
		Paragraphs: []string{
			fmt.Sprintf("The channel %s in %s was disconnected on %s, because the person who granted access to the "+
				"account chose “This was not me”.", quoted(channel, someKey), org, i.at(when)),
			"Unpublished posts for the channel were deleted. The audit log shows who started the connection.",
		},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because you manage this organization.",
	})
}

// RoleChanged returns a message that tells a member their new role.
func (i Instance) RoleChanged(to, organization, role, by string) mail.Message {
	org := quoted(organization, someOrganization)
	return i.message(content{
		To:      to,
		Subject: "Your role in " + org + " was changed",
		Paragraphs: []string{fmt.Sprintf("%s changed your role in %s: it is now %s.",
			quoted(by, someone), org, roleName(role))},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because you are a member of this organization.",
	})
}

// RemovedFromOrganization returns a message that tells a former member that they were removed.
func (i Instance) RemovedFromOrganization(to, organization string) mail.Message {
	org := quoted(organization, someOrganization)
	return i.message(content{
		To:         to,
		Subject:    "You are no longer a member of " + org,
		Paragraphs: []string{"You were removed from " + org + ". You can no longer see its posts and channels."},
		Reason:     "You are receiving this message because you were a member of this organization.",
	})
}

// OwnershipReceived returns a message that tells a member that they now own an organization.
func (i Instance) OwnershipReceived(to, organization, by string) mail.Message {
	org := quoted(organization, someOrganization)
	return i.message(content{
		To:      to,
		Subject: "You are now the owner of " + org,
		Paragraphs: []string{fmt.Sprintf(
			"%s has made you the owner of %s. You can now manage the organization's members and API keys, and you "+
				"can delete the organization.",
			quoted(by, someone), org)},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because you are a member of this organization.",
	})
}

// OrganizationDeletion returns a message that tells a member that the organization will be deleted.
// It states the deadline for undoing the deletion.
func (i Instance) OrganizationDeletion(to, organization, by string, until time.Time) mail.Message {
	org := quoted(organization, someOrganization)
	return i.message(content{
		To:      to,
		Subject: org + " will be deleted",
		Paragraphs: []string{
			fmt.Sprintf("%s has requested the deletion of %s. The organization will be deleted on %s, together with "+
				"its posts, channels and API keys.",
				quoted(by, someone), org, i.at(until)),
			"The owner can undo the deletion until then. After that, nothing can be restored.",
		},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because you are a member of this organization.",
	})
}
