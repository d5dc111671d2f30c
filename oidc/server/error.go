package server

import (
	"encoding/json"
	"errors"
	"net/http"

	zoidc "github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"crier/oidc"
	"crier/platform/fault"
)

// codes maps the codes that the token, introspection and revocation endpoints return to the errors
// of op, whose type of code is private.
var codes = map[oidc.Code]func() *zoidc.Error{
	oidc.InvalidRequest:       zoidc.ErrInvalidRequest,
	oidc.InvalidClient:        zoidc.ErrInvalidClient,
	oidc.InvalidGrant:         zoidc.ErrInvalidGrant,
	oidc.InvalidScope:         zoidc.ErrInvalidScope,
	oidc.InvalidTarget:        zoidc.ErrInvalidTarget,
	oidc.UnauthorizedClient:   zoidc.ErrUnauthorizedClient,
	oidc.UnsupportedGrantType: zoidc.ErrUnsupportedGrantType,
}

// asStatus converts an error to one that op answers with the right status. A fault is answered as
// server_error or, if a later request may succeed, with its message.
func asStatus(err error) error {
	var refused *oidc.Error
	if errors.As(err, &refused) && codes[refused.Code] != nil {
		return op.NewStatusError(codes[refused.Code]().WithDescription("%s", refused.Message), statusOf(refused.Code))
	}
	status := http.StatusInternalServerError
	switch fault.KindOf(err) {
	case fault.Unavailable:
		status = http.StatusServiceUnavailable
	case fault.RateLimited:
		status = http.StatusTooManyRequests
	}
	answer := zoidc.ErrServerError().WithParent(err)
	var f *fault.Error
	if errors.As(err, &f) && f.Message != "" && status != http.StatusInternalServerError {
		answer = answer.WithDescription("%s", f.Message)
	}
	return op.NewStatusError(answer, status)
}

func statusOf(code oidc.Code) int {
	if code == oidc.InvalidClient {
		return http.StatusUnauthorized
	}
	return http.StatusBadRequest
}

// refuse answers a request that op never sees.
func refuse(w http.ResponseWriter, status int, refused *oidc.Error) {
	writeJSON(w, status, struct {
		Error       oidc.Code `json:"error"`
		Description string    `json:"error_description,omitempty"`
	}{refused.Code, refused.Message})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
