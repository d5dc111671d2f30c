package signin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"crier/platform/fault"
	"crier/platform/outbound"
)

var (
	errRefused    = errors.New("refused")
	errSetup      = errors.New("the provider does not accept the client id, its secret or the redirect address")
	errUnverified = errors.New("the account at the provider has no verified address")
	errAnswer     = errors.New("the response is not as documented")
	errNotFound   = errors.New("no issuer metadata was found: OIDC_ISSUER must be the provider's issuer, which is " +
		"the address of its metadata without " + oidc.DiscoveryEndpoint)
	errRequest = errors.New("the request failed")
	errPrivate = errors.New("the provider names an address that is neither public nor on the host and port of " +
		"OIDC_ISSUER or GITHUB_URL: configure the provider to name its endpoints there")
)

// refused returns an error for a code or token that does not prove who signed in. The reason must
// not contain text from the provider.
func refused(reason string) error { return fmt.Errorf("%w: %s", errRefused, reason) }

// issuerError reports that the configured issuer differs from the issuer in the metadata. Unlike
// other errors, it contains text from the provider: the issuer, which helps the operator and is not
// a secret.
type issuerError struct{ configured, named string }

func (e *issuerError) Error() string {
	return fmt.Sprintf("the configured issuer is %q, but its metadata names %.*q: set OIDC_ISSUER to that name if "+
		"it is the right provider", e.configured, maxIssuer, e.named)
}

// clockError reports an id_token whose times differ from our clock by more than skew.
type clockError struct {
	ahead bool // the issuer's clock is ahead of ours
	by    time.Duration
	// claim is the time in the token, and now is the time on our clock.
	claim, now time.Time
}

func newClockError(claim, now time.Time) *clockError {
	return &clockError{ahead: claim.After(now), by: claim.Sub(now).Abs(), claim: claim, now: now}
}

func (e *clockError) Error() string {
	return fmt.Sprintf("the id_token has the time %s by the issuer's clock, but this service's clock shows %s: the "+
		"issuer's clock is %s this service's; synchronize both with a time server",
		e.claim.UTC().Format(time.RFC3339), e.now.UTC().Format(time.RFC3339), e.difference())
}

// difference describes how far the issuer's clock is from ours. Example: 7m3s ahead of
func (e *clockError) difference() string {
	if e.ahead {
		return e.by.Round(time.Second).String() + " ahead of"
	}
	return e.by.Round(time.Second).String() + " behind"
}

// fault returns the fault for an error that the source returned.
func (s site) fault(op string, err error) error {
	var clocks *clockError
	kind, message := fault.Unavailable, s.Label+" does not respond correctly: start the sign-in again in a minute."
	switch {
	case errors.As(err, &clocks):
		kind, message = fault.Invalid, fmt.Sprintf("The sign-in with %s was refused because the clock of %s is %s "+
			"this service's, and at most %d minutes are accepted: tell the operator of this service.",
			s.Label, s.Label, clocks.difference(), int(skew.Minutes()))
	case errors.Is(err, errRefused):
		kind, message = fault.Invalid, "The sign-in with "+s.Label+" was refused: start again."
	case errors.Is(err, errUnverified):
		kind, message = fault.Invalid, "Verify your email address at "+s.Label+", then start the sign-in again."
	case isSetup(err):
		message = "The sign-in with " + s.Label + " is not set up correctly: tell the operator of this service."
	}
	return fault.Wrap(kind, op, message, err)
}

// isSetup reports whether err means that the provider is not set up correctly, either here or at
// the provider. Sign-ins will fail until the operator corrects the setup.
func isSetup(err error) bool {
	var issuers *issuerError
	return errors.Is(err, errSetup) || errors.Is(err, errPrivate) || errors.Is(err, errNotFound) ||
		errors.As(err, &issuers)
}

// statusError is an unsuccessful response from the provider.
type statusError struct {
	status int
	// limited is true if the request was rejected only because of a rate limit.
	limited bool
}

func (e *statusError) Error() string { return fmt.Sprintf("the response has status %d", e.status) }

// tokenError classifies an error from a code exchange. It leaves out text from the provider,
// because the text could repeat the code or the secret.
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
	return refused(fmt.Sprintf("the token endpoint responded with status %d and an error code", status))
}

// transportError returns the part of err that describes the failure on our side. It leaves out the
// rest, which may contain text from the provider.
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
