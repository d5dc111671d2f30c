package oauth

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/oidc"
	"crier/platform/fault"
)

// Failure is the body of an error response to a client (RFC 6749, section 5.2).
type Failure struct {
	Error       string `json:"error" doc:"Error code from RFC 6749, 7591, 8628 or 8707."`
	Description string `json:"error_description,omitempty" doc:"What went wrong, for the developer of the client."`
}

// AnswerErrors is a guard for the routes that clients call. It responds to errors from later
// handlers in the format of RFC 6749.
func AnswerErrors(c *fiber.Ctx) error {
	err := c.Next()
	if err == nil {
		return nil
	}
	return sendFailure(c, err)
}

// sendFailure responds with an error in the format of RFC 6749.
func sendFailure(c *fiber.Ctx, err error) error {
	request.From(c.Context()).Err = err
	status, code, message, wait := failureOf(err)
	if wait > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(wait))
	}
	if status == http.StatusUnauthorized {
		c.Set(fiber.HeaderWWWAuthenticate, `Basic realm="crier"`)
	}
	noStore(c)
	return c.Status(status).JSON(Failure{Error: string(code), Description: message})
}

// failureOf returns an error's status, code and message, and the number of seconds to wait before a
// retry.
func failureOf(err error) (status int, code oidc.Code, message string, wait int) {
	var own *oidc.Error
	if errors.As(err, &own) {
		if own.Code == oidc.InvalidClient {
			return http.StatusUnauthorized, own.Code, own.Message, 0
		}
		return http.StatusBadRequest, own.Code, own.Message, 0
	}
	p := problem.Of(err, "")
	switch {
	case p.StatusCode >= http.StatusInternalServerError && p.StatusCode != http.StatusServiceUnavailable:
		code = "server_error"
	case p.StatusCode == http.StatusServiceUnavailable, p.StatusCode == http.StatusTooManyRequests:
		code = "temporarily_unavailable"
	case fault.Is(err, fault.Unauthenticated):
		code = oidc.InvalidClient
	case fault.Is(err, fault.Forbidden):
		code = oidc.AccessDenied
	default:
		code = oidc.InvalidRequest
	}
	return p.StatusCode, code, p.Msg, p.RetryAfter
}

// noStore keeps caches from storing a response (RFC 6749, section 5.1).
func noStore(c *fiber.Ctx) {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderPragma, "no-cache")
}
