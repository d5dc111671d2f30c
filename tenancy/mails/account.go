package mails

import (
	"fmt"
	"time"

	"crier/platform/mail"
)

// ignore is a note in messages that somebody other than the address's owner can trigger.
const ignore = "If this was not you, you can ignore this message: nothing changes unless the link is used."

// Activation returns a message that asks a new person to confirm their address. The message repeats
// nothing that was entered at registration, because anybody can register any address.
func (i Instance) Activation(to, link string) mail.Message {
	return i.message(content{
		To:         to,
		Subject:    "Activate your account at " + i.Name,
		Paragraphs: []string{"Confirm this e-mail address to activate your account."},
		Buttons:    []button{{Label: "Activate the account", URL: link}},
		Notes:      []string{ignore},
		Reason:     "You are receiving this message because an account was registered with your e-mail address.",
	})
}

// RegisterAgain returns the message for a person who requested another activation link but whose
// address was registered more than once. The message contains no activation link, because the link
// could belong to a registration that somebody else made.
func (i Instance) RegisterAgain(to, registerURL string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Register again at " + i.Name,
		Paragraphs: []string{
			"You asked for another link to activate your account. This e-mail address was registered more than once, " +
				"perhaps not always by you.",
			"Register again, and use the link in the message that you then receive.",
		},
		Buttons: []button{{Label: "Register", URL: registerURL}},
		Notes:   []string{"If this was not you, you can ignore this message: there is no account."},
		Reason:  "You are receiving this message because an account was registered with your e-mail address.",
	})
}

// AlreadyRegistered returns the message sent when somebody tries to register an address that
// already has an account. Only the address's owner learns that the account exists.
func (i Instance) AlreadyRegistered(to, loginURL, forgotURL string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "You have an account at " + i.Name,
		Paragraphs: []string{
			"Someone tried to register an account with this e-mail address. " +
				"The address already has an account, so no new one was created.",
			"Log in with your password, or choose a new one if you have forgotten it.",
		},
		Buttons: []button{{Label: "Log in", URL: loginURL}, {Label: "Choose a new password", URL: forgotURL}},
		Notes:   []string{"If this was not you, you can ignore this message: your account is unchanged."},
		Reason:  "You are receiving this message because your e-mail address was used to register an account.",
	})
}

// ResetPassword returns a message with a link for choosing a new password. The message says how
// long the link is valid.
func (i Instance) ResetPassword(to, link string, valid time.Duration) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Choose a new password for " + i.Name,
		Paragraphs: []string{fmt.Sprintf(
			"Someone asked to reset the password of your account. The link is valid for %s and works once.", span(valid))},
		Buttons: []button{{Label: "Choose a new password", URL: link}},
		Notes:   []string{ignore},
		Reason:  "You are receiving this message because a new password was requested for your account.",
	})
}

// ConfirmNewAddress returns a message that asks the owner of the new address to confirm the change.
func (i Instance) ConfirmNewAddress(to, link string) mail.Message {
	return i.message(content{
		To:         to,
		Subject:    "Confirm your new e-mail address for " + i.Name,
		Paragraphs: []string{"Confirm that this is the new e-mail address of your account."},
		Buttons:    []button{{Label: "Confirm the address", URL: link}},
		Notes:      []string{ignore},
		Reason:     "You are receiving this message because this address was entered as the new address of an account.",
	})
}

// ConfirmOldAddress returns a message that asks the owner of the current address to allow the
// change.
func (i Instance) ConfirmOldAddress(to, newAddress, link string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Allow the change of your e-mail address at " + i.Name,
		Paragraphs: []string{fmt.Sprintf(
			"Someone asked to change the e-mail address of your account to %s. Allow it only if this was you.",
			quoted(newAddress, "another address"))},
		Buttons: []button{{Label: "Allow the change", URL: link}},
		Notes: []string{"If this was not you, do not open the link. " +
			"Log in, change your password and end the other sessions: someone else is using your account."},
		Reason: "You are receiving this message because this is the e-mail address of your account.",
	})
}

// AddressChanged returns a message that tells the owner of the old address that the account has a
// new one.
func (i Instance) AddressChanged(to, newAddress string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "Your e-mail address at " + i.Name + " was changed",
		Paragraphs: []string{
			fmt.Sprintf("The e-mail address of your account is now %s. Messages about the account go there.",
				quoted(newAddress, "another address")),
			"If this was not you, ask the operator of this service for help: someone else is using your account.",
		},
		Reason: "You are receiving this message because this was the e-mail address of the account until now.",
	})
}

// AccountDeletion returns a message that tells a person that their account will be deleted, and
// until when they can undo the deletion.
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

// DeletionUndone returns a message saying that an account or organization will not be deleted. what
// names the account or organization. If what is empty, the message says "your account".
func (i Instance) DeletionUndone(to, what string) mail.Message {
	return i.message(content{
		To:      to,
		Subject: "A deletion at " + i.Name + " was undone",
		Paragraphs: []string{
			fmt.Sprintf("The deletion of %s was undone. Nothing was removed.", quoted(what, "your account")),
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
			fmt.Sprintf("%s, an operator of this service, started acting as you on %s.",
				quoted(by, "Someone"), i.at(when)),
			"What they do is recorded in the audit log. If you did not ask for help, contact the operator.",
		},
		Reason: "You are receiving this message because it concerns the security of your account.",
	})
}
