package mails

import (
	"fmt"
	"time"

	"crier/platform/mail"
	"crier/tenancy"
)

// Review is the content of an email to a reviewer.
type Review struct {
	To           string
	Organization string
	// By is the requester's name, or the requester's address if they have no name. It may be empty.
	By string
	// Note is the requester's note to the reviewer. It may be empty.
	Note string
	// Words is the beginning of the post's text. It may be empty.
	Words string
	// Channel and Platform are the names of the channel and its platform.
	Channel, Platform string
	// Zone is the organization's time zone, in which times are shown.
	Zone string
	Link string
	// PublishDate is when the post is to be published.
	PublishDate time.Time
	// ExpiresAt is when the link expires.
	ExpiresAt time.Time
	// Reminder is true in the second email about a request.
	Reminder bool
	// Ended is true in the email to a guest whose approval no longer applies.
	Ended bool
}

// Review returns an email about an approval request: the request, a reminder, or a notice that the
// approval no longer applies.
func (i Instance) Review(r Review) mail.Message {
	if zone, err := tenancy.LoadZone(r.Zone); err == nil { // else UTC
		i.Zone = zone
	}
	if r.Ended {
		return i.reviewEnded(r)
	}
	return i.reviewRequest(r)
}

func (i Instance) reviewEnded(r Review) mail.Message {
	org := quoted(r.Organization, someOrganization)
	return i.message(content{
		To:      r.To,
		Subject: fmt.Sprintf("The approval of a post by %s no longer applies", org),
		Paragraphs: []string{
			fmt.Sprintf("You were asked to review a post by %s for %s. The post was approved for publication on %s. "+
				"Since then, the post has been changed or the request has been withdrawn, so the approval no longer "+
				"applies.",
				org, channelName(r.Channel, r.Platform), i.at(r.PublishDate)),
			"You do not need to do anything. If the post needs your approval again, you will receive another email.",
		},
		Reason: "You are receiving this message because a review request was sent to this address.",
	})
}

// reviewRequest returns a message that asks a person, who may not have an account, to approve a
// post. The message quotes the post and the note only briefly and without links, because the
// recipient did not request the message.
func (i Instance) reviewRequest(r Review) mail.Message {
	org := quoted(r.Organization, someOrganization)
	subject := fmt.Sprintf("%s has asked you to review a post", org)
	if r.Reminder {
		subject = fmt.Sprintf("Reminder: %s is waiting for you to review a post", org)
	}
	c := content{
		To:      r.To,
		Subject: subject,
		Paragraphs: []string{fmt.Sprintf("%s has asked you to review a post by %s for %s. The planned publication "+
			"date is %s.",
			quoted(r.By, someone), org, channelName(r.Channel, r.Platform), i.at(r.PublishDate))},
		Buttons: []button{{Label: "Review the post", URL: r.Link}},
		Notes: []string{
			"The texts in quotation marks were written by members of that organization.",
			"Do not forward this message: anyone with the link can answer in your place.",
		},
		Reason: "You are receiving this message because a member of an organization entered your email address.",
	}
	if words := excerpt(r.Words, maxWords); words != "" {
		c.Paragraphs = append(c.Paragraphs, "The post begins: "+words)
	}
	if note := excerpt(r.Note, maxReason); note != "" {
		c.Paragraphs = append(c.Paragraphs, "Their note: "+note)
	}
	c.Paragraphs = append(c.Paragraphs,
		fmt.Sprintf("You can approve or reject the post until %s. You do not need an account.", i.at(r.ExpiresAt)))
	return i.message(c)
}
