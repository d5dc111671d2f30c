package mails

import (
	"fmt"
	"time"

	"crier/platform/mail"
)

// security returns a message about an account change that the account's owner should know about.
// happened is the beginning of a sentence, such as "The password was changed". The message
// completes the sentence with the time and the network address.
func (i Instance) security(to, subject, happened string, when time.Time, address string) mail.Message {
	return i.message(content{
		To: to, Subject: subject,
		Paragraphs: []string{
			fmt.Sprintf("%s on %s, from the IP address %s.", happened, i.at(when), name(address, "(unknown)")),
			"If this was you, you do not need to do anything. If not, log in, change your password and end all other " +
				"sessions.",
		},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason:  "You are receiving this message because it concerns the security of your account.",
	})
}

// NewDevice returns a message that tells a person about a login from a new device. device describes
// the device, such as its browser and operating system.
func (i Instance) NewDevice(to string, when time.Time, device, address string) mail.Message {
	return i.security(to, "New login to "+i.Name,
		"Someone logged in to your account from a new device, "+quoted(device, "unknown")+",", when, address)
}

// PasswordChanged returns a message that tells a person that their account has a new password.
func (i Instance) PasswordChanged(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Your password at "+i.Name+" was changed",
		"Your password was changed", when, address)
}

// SecondFactorOn returns a message that tells a person that logins now need a second factor.
func (i Instance) SecondFactorOn(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Two-factor login at "+i.Name+" is on",
		"Two-factor login was turned on for your account", when, address)
}

// SecondFactorOff returns a message that tells a person that logins no longer need a second factor.
func (i Instance) SecondFactorOff(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Two-factor login at "+i.Name+" is off",
		"Two-factor login was turned off for your account", when, address)
}

// RecoveryCodesReplaced returns a message that tells a person that their old recovery codes are no
// longer valid.
func (i Instance) RecoveryCodesReplaced(to string, when time.Time, address string) mail.Message {
	return i.security(to, "Your recovery codes at "+i.Name+" were replaced",
		"Your recovery codes were replaced", when, address)
}

// IdentityUnlinked returns a message that tells a person that they can no longer log in with an
// account at another provider.
func (i Instance) IdentityUnlinked(to, provider string, when time.Time, address string) mail.Message {
	return i.security(to, "A login method was removed from your account at "+i.Name,
		"Login with "+quoted(provider, "another service")+" was removed from your account", when, address)
}

// IdentityLinked returns a message that tells a person that they can now log in with an account at
// another provider.
func (i Instance) IdentityLinked(to, provider string, when time.Time, address string) mail.Message {
	return i.security(to, "A login method was added to your account at "+i.Name,
		"Login with "+quoted(provider, "another service")+" was added to your account", when, address)
}
