package record

import (
	"crier/tenancy"
)

// MFASecret is a second factor whose setup has begun.
type MFASecret struct {
	Secret string `json:"secret" doc:"The secret in base32, for manual entry."`
	URL    string `json:"otpauthUrl" doc:"URL to display as a QR code."`
}

// MFASecretOutput is the response with a new second factor.
type MFASecretOutput struct{ Body MFASecret }

// NewMFASecret returns the response for a new second factor.
func NewMFASecret(s tenancy.Secret) *MFASecretOutput {
	return &MFASecretOutput{Body: MFASecret{Secret: s.Text, URL: s.URL}}
}
