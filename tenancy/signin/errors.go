package signin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"golang.org/x/oauth2"

	"crier/platform/fault"
	"crier/platform/outbound"
)

var (
	errRefused    = errors.New("refused")
	errSetup      = errors.New("the provider does not accept the client id, its secret or the redirect address")
	errUnverified = errors.New("the account at the provider has no verified address")
	errAnswer     = errors.New("the answer is not as documented")
	errRequest    = errors.New("the request failed")
	errPrivate    = errors.New("the provider names an address that is neither public nor on the host and port of " +
		"OIDC_ISSUER or GITHUB_URL: configure the provider to name its endpoints there")
)

// refused returns an error for a code or a token that proves nothing. The reason must not hold a text of the provider.
func refused(reason string) error { return fmt.Errorf("%w: %s", errRefused, reason) }

// fault returns the fault for an error of the source.
func (s site) fault(op string, err error) error {
	kind, message := fault.Unavailable, s.Label+" does not answer as it should: begin the sign-in again in a minute."
	switch {
	case errors.Is(err, errRefused):
		kind, message = fault.Invalid, "The sign-in with "+s.Label+" was refused: begin again."
	case errors.Is(err, errUnverified):
		kind, message = fault.Invalid, "Verify your e-mail address at "+s.Label+", then begin the sign-in again."
	case errors.Is(err, errSetup), errors.Is(err, errPrivate):
		message = "The sign-in with " + s.Label + " is not set up correctly: tell the operator of this service."
	}
	return fault.Wrap(kind, op, message, err)
}

// statusError is an answer to a read with another status than 200.
type statusError struct {
	status int
	// limited is true when the request was refused only because of a rate limit.
	limited bool
}

func (e *statusError) Error() string { return fmt.Sprintf("the answer has status %d", e.status) }

// tokenError returns what the failure of a code exchange means. The texts of the provider are left out: it could repeat
// the code or the secret in them.
func tokenError(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return transportError(err)
	}
	status := answer.Response.StatusCode
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return &statusError{status: status}
	}
	switch answer.ErrorCode {
	case "invalid_client", "unauthorized_client", "unsupported_grant_type",
		"incorrect_client_credentials", "redirect_uri_mismatch":
		return errSetup
	case "unverified_user_email":
		return errUnverified
	case "server_error", "temporarily_unavailable", "slow_down":
		return &statusError{status: status}
	case "":
		return fmt.Errorf("%w: status %d without an error code", errAnswer, status)
	}
	return refused(fmt.Sprintf("the token endpoint answered with status %d and an error code", status))
}

// transportError returns the part of err that names what failed on this side. Its other texts may hold what the provider
// sent.
func transportError(err error) error {
	if errors.Is(err, outbound.ErrBlocked) {
		return fmt.Errorf("%w: %w", errPrivate, outbound.ErrBlocked)
	}
	for _, known := range []error{
		context.DeadlineExceeded, context.Canceled, outbound.ErrTooLarge, io.ErrUnexpectedEOF, io.EOF,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return network
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return certificate
	}
	return errRequest
}
