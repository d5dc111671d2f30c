package browser

import (
	"testing"

	"crier/tests/npm"
)

// Consent is a person who signs in and approves an authorization request.
type Consent struct {
	// Start is the address of the request. The pages of its origin are checked.
	Start string `json:"start"`
	// Email and Password sign the person in, if a page asks for them. A wrong password is tried
	// first.
	Email    string `json:"email"`
	Password string `json:"password"`
	// JavaScript lets the pages run scripts. Only then, axe checks them.
	JavaScript bool `json:"javaScript"`
	// Client starts the addresses of the client. No request is sent to it.
	Client string `json:"client"`
}

// Consented is how a consent ended.
type Consented struct {
	// Address is where the browser was led.
	Address string `json:"address"`
	// Pages has the titles of the pages, in order.
	Pages []string `json:"pages"`
	// Wrong has a sentence for each fault.
	Wrong []string `json:"wrong"`
}

// Approve opens an authorization request in Chromium at a width of 360 pixels, signs in, limits the
// client to drafts, and approves. Approve has the same requirements as Check.
func Approve(t testing.TB, c Consent) (out Consented) {
	t.Helper()
	input := struct {
		Consent
		Chromium string `json:"chromium"`
	}{c, chromium(t)}
	npm.Run(t, files, "consent.mjs", runTime, input, &out)
	return out
}
