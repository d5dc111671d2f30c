package mails

import (
	"fmt"
	"time"

	"crier/platform/mail"
)

// ignore is a note for messages that anybody can trigger, not only the recipient.
const ignore = "If this was not you, you can ignore this message. Nothing will change unless the link is used."

// Activation returns a message that asks a newly registered person to confirm their email address.
// The message repeats nothing that was entered at registration, because anybody can register any
// address.
func (i Instance) Activation(to, link string) mail.Message {
	return i.message(content{
		To:         to,
		Subject:    "Activate your account at " + i.Name,
		Paragraphs: []string{"Please confirm this email address to activate your account."},
		Buttons:    []button{{Label: "Activate the account", URL: link}},
		Notes:      []string{ignore},
		Reason:     "You are receiving this message because an account was registered with your email address.",
	})
}

// RegisterAgain returns the message for a person who requested a new activation link for an email
// address with several registrations. The message contains no activation link, because the link
// could belong to a registration that somebody else made.
func (i Instance) RegisterAgain(to, registerURL string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Register again at " + i.Name,
		Paragraphs: []string{
			"You requested a new activation link. This email address was registered more than once, possibly by " +
				"someone else.",
			"Please register again, and use the link in the next email you receive.",
		},
		Buttons: []button{{Label: "Register", URL: registerURL}},
		Notes:   []string{"If this was not you, you can ignore this message. There is no account with this address."},
		Reason:  "You are receiving this message because an account was registered with your email address.",
	})
}

// AlreadyRegistered returns a message that tells the owner of an email address that somebody tried
// to register the address again. Nobody else learns that the address already has an account.
func (i Instance) AlreadyRegistered(to, loginURL, forgotURL string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "You have an account at " + i.Name,
		Paragraphs: []string{
			"Someone tried to register an account with this email address. The address already has an account, so no " +
				"new account was created.",
			"Log in with your password, or choose a new one if you have forgotten it.",
		},
		Buttons: []button{{Label: "Log in", URL: loginURL}, {Label: "Choose a new password", URL: forgotURL}},
		Notes:   []string{"If this was not you, you can ignore this message. Your account is unchanged."},
		Reason:  "You are receiving this message because someone tried to register an account with your email address.",
	})
}

// ResetPassword returns a message with a link for choosing a new password. The message says how
// long the link is valid.
func (i Instance) ResetPassword(to, link string, valid time.Duration) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Choose a new password for " + i.Name,
		Paragraphs: []string{fmt.Sprintf(
			"Someone requested a password reset for your account. The link is valid for %s and works once.",
			span(valid))},
		Buttons: []button{{Label: "Choose a new password", URL: link}},
		Notes:   []string{ignore},
		Reason:  "You are receiving this message because a password reset was requested for your account.",
	})
}

// ConfirmNewAddress returns a message that asks the owner of an account's new email address to
// confirm the address.
func (i Instance) ConfirmNewAddress(to, link string) mail.Message {
	return i.message(content{
		To:         to,
		Subject:    "Confirm your new email address for " + i.Name,
		Paragraphs: []string{"Please confirm that this is your new email address."},
		Buttons:    []button{{Label: "Confirm the address", URL: link}},
		Notes:      []string{ignore},
		Reason:     "You are receiving this message because this address was entered as the new address of an account.",
	})
}

// ConfirmOldAddress returns a message that asks the owner of an account's current email address to
// allow a change to a new address.
func (i Instance) ConfirmOldAddress(to, newAddress, link string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Allow the change of your email address at " + i.Name,
		Paragraphs: []string{fmt.Sprintf(
			"Someone asked to change your account's email address to %s. Allow the change only if this was you.",
			quoted(newAddress, "another address"))},
		Buttons: []button{{Label: "Allow the change", URL: link}},
		Notes: []string{"If this was not you, someone else is using your account. Do not open the link. Log in, " +
			"change your password and end all other sessions."},
		Reason: "You are receiving this message because this is your account's email address.",
	})
}

// AddressChanged returns a message that tells the owner of an account's old email address that the
// account's address has changed.
func (i Instance) AddressChanged(to, newAddress string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Your email address at " + i.Name + " was changed",
		Paragraphs: []string{
			fmt.Sprintf("Your account's email address is now %s. Emails about your account will be sent there from "+
				"now on.",
				quoted(newAddress, "another address")),
			"If this was not you, someone else is using your account. Contact the operator of this service for help.",
		},
		Reason: "You are receiving this message because this was the account's email address until now.",
	})
}

// AccountDeletion returns a message that tells a person that their account will be deleted. It
// states the deadline for undoing the deletion.
func (i Instance) AccountDeletion(to string, until time.Time) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Your account at " + i.Name + " will be deleted",
		Paragraphs: []string{
			fmt.Sprintf("Your account will be deleted on %s. Log in before then to keep it.", i.at(until)),
			"After that, the account and its data cannot be restored.",
		},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because the deletion of your account was requested.",
	})
}

// DeletionUndone returns a message saying that an account or organization will not be deleted after
// all. what is the organization's name, or empty for the recipient's own account.
func (i Instance) DeletionUndone(to, what string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "A deletion at " + i.Name + " was undone",
		Paragraphs: []string{
			fmt.Sprintf("The deletion of %s was undone. Nothing has been removed.", quoted(what, "your account")),
		},
		Reason: "You are receiving this message because you were notified of the deletion.",
	})
}

// Impersonated returns a message that tells a person that an operator used their account.
func (i Instance) Impersonated(to, by string, when time.Time) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "An operator of " + i.Name + " used your account",
		Paragraphs: []string{
			fmt.Sprintf("%s, an operator of this service, started using your account on %s.",
				quoted(by, "Someone"), i.at(when)),
			"Every change that the operator makes in your account is recorded in the audit log. If you did not ask for " +
				"help, contact the operator of this service.",
		},
		Reason: "You are receiving this message because it concerns the security of your account.",
	})
}
