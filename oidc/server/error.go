package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"crier/oidc"
	"crier/platform/fault"
)

// serverError is the code for a failure that the client did not cause. RFC 6749 defines it only for
// redirects, but op and other servers also return it in responses.
const serverError oidc.Code = "server_error"

// fail responds to a failed request. For a fault, the code is server_error. If a later request may
// succeed, the response contains the fault's message. Otherwise, fail logs the cause.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refused *oidc.Error
	if errors.As(err, &refused) {
		refuse(w, statusOf(refused.Code), refused)
		return
	}
	status, message := http.StatusInternalServerError, ""
	var f *fault.Error
	if errors.As(err, &f) {
		switch f.Kind {
		case fault.Unavailable:
			status, message = http.StatusServiceUnavailable, f.Message
		case fault.RateLimited:
			status, message = http.StatusTooManyRequests, f.Message
		}
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
		}
	}
	if status == http.StatusInternalServerError {
		h.server.deps.Log.ErrorContext(r.Context(), "OAuth request failed", "path", r.URL.Path, "error", err)
	}
	refuse(w, status, oidc.Fail(serverError, message))
}

func statusOf(code oidc.Code) int {
	if code == oidc.InvalidClient {
		return http.StatusUnauthorized
	}
	return http.StatusBadRequest
}

// refuse writes an error in the format of RFC 6749.
func refuse(w http.ResponseWriter, status int, refused *oidc.Error) {
	writeJSON(w, status, struct {
		Error       oidc.Code `json:"error"`
		Description string    `json:"error_description,omitempty"`
	}{refused.Code, refused.Message})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}
