package mails

import (
	"fmt"
	"time"

	"crier/platform/mail"
)

// security returns a message about a change to an account that its owner should know about.
// happened is a sentence without its end, such as "The password was changed"; when and the network
// address follow it.
func (i Instance) security(to, subject, happened string, when time.Time, address string) mail.Message {
	return i.message(content{
		To: to, Subject: subject,
		Paragraphs: []string{
			fmt.Sprintf("%s on %s, from the network address %s.", happened, i.at(when), name(address, "(unknown)")),
			"If this was you, you do not need to do anything. " +
				"If not, log in, change your password and end the other sessions.",
		},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because it concerns the security of your account.",
	})
}

// NewDevice tells a person about a login from a device that the person had not used before. device
// describes it, such as a browser and an operating system.
func (i Instance) NewDevice(to string, when time.Time, device, address string) mail.Message {
	return i.security(to, "New login to "+i.Name,
		"Someone logged in to your account with a new device, "+quoted(device, "unknown")+",", when, address)
}

// PasswordChanged tells a person that the account has a new password.
func (i Instance) PasswordChanged(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Your password at "+i.Name+" was changed",
		"The password of your account was changed", when, address)
}

// SecondFactorOn tells a person that logins need a second factor.
func (i Instance) SecondFactorOn(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Two-factor login at "+i.Name+" is on",
		"Two-factor login was turned on for your account", when, address)
}

// SecondFactorOff tells a person that logins no longer need a second factor.
func (i Instance) SecondFactorOff(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Two-factor login at "+i.Name+" is off",
		"Two-factor login was turned off for your account", when, address)
}

// RecoveryCodesReplaced tells a person that the old recovery codes are no longer valid.
func (i Instance) RecoveryCodesReplaced(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Your recovery codes at "+i.Name+" were replaced",
		"The recovery codes of your account were replaced", when, address)
}

// IdentityUnlinked tells a person that an account of another provider can no longer log in.
func (i Instance) IdentityUnlinked(to, provider string, when time.Time, address string) mail.Message {
	return i.security(to, "A login was removed from your account at "+i.Name,
		"The login with "+quoted(provider, "another service")+" was removed from your account", when, address)
}

// IdentityLinked tells a person that an account of another provider can now log in to their
// account.
func (i Instance) IdentityLinked(to, provider string, when time.Time, address string) mail.Message {
	return i.security(to, "A login was added to your account at "+i.Name,
		"The login with "+quoted(provider, "another service")+" was added to your account", when, address)
}
