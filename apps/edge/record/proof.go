package record

import (
	"crier/tenancy"
)

// ProofRequest holds what a signed-in person sends to prove their identity again.
type ProofRequest struct {
	Password string `json:"password,omitempty" maxLength:"128" doc:"Your password. If you have none, leave it out and sign in again first."`
	Code     string `json:"code,omitempty" maxLength:"64" doc:"Code from your second factor, if you have one and have not used it in the last 10 minutes."`
}

// Proof returns the proof for a use case.
func (r ProofRequest) Proof() tenancy.Proof { return tenancy.Proof{Password: r.Password, Code: r.Code} }
