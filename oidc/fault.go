package oidc

// Code is an error code from RFC 6749, 7591, 8628 or 8707.
type Code string

// The error codes.
const (
	InvalidRequest          Code = "invalid_request"
	InvalidClient           Code = "invalid_client"
	InvalidGrant            Code = "invalid_grant"
	UnauthorizedClient      Code = "unauthorized_client"
	UnsupportedGrantType    Code = "unsupported_grant_type"
	UnsupportedResponseType Code = "unsupported_response_type"
	InvalidScope            Code = "invalid_scope"
	InvalidTarget           Code = "invalid_target"
	InvalidRedirectURI      Code = "invalid_redirect_uri"
	InvalidClientMetadata   Code = "invalid_client_metadata"
	InvalidToken            Code = "invalid_token"
	AccessDenied            Code = "access_denied"
	AuthorizationPending    Code = "authorization_pending"
	SlowDown                Code = "slow_down"
	ExpiredToken            Code = "expired_token"
)

// Error is an error that OAuth endpoints return in the format that the relevant RFC defines. Errors
// that the request did not cause, such as an unreachable database, are faults.
type Error struct {
	Code Code
	// Message is written for the client's developer. It contains no secrets.
	Message string
}

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Fail returns an Error.
func Fail(code Code, message string) *Error { return &Error{Code: code, Message: message} }
