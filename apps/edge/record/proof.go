package record

import (
	"crier/tenancy"
)

// ProofRequest holds what a signed-in person sends to prove their identity again.
type ProofRequest struct {
	Password string `json:"password,omitempty" maxLength:"128" doc:"Your password. If you do not have a password, sign in again, then send the request without this field."`
	Code     string `json:"code,omitempty" maxLength:"64" doc:"Code from your second factor. Needed only if you have a second factor and have not used it in the last 10 minutes."`
}

// Proof converts the request to the proof that a use case expects.
func (r ProofRequest) Proof() tenancy.Proof { return tenancy.Proof{Password: r.Password, Code: r.Code} }
