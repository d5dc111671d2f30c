package record

import (
	"crier/tenancy"
)

// ProofRequest has the members with which a person with a session proves again who is making the
// request.
type ProofRequest struct {
	Password string `json:"password,omitempty" maxLength:"128" doc:"Absent without one: sign in again before."`
	Code     string `json:"code,omitempty" maxLength:"64" doc:"Of your second factor, if you have one and did not use it in the last 10 minutes."`
}

// Proof returns the proof for a use case.
func (r ProofRequest) Proof() tenancy.Proof { return tenancy.Proof{Password: r.Password, Code: r.Code} }
