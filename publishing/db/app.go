package db

import "time"

// PlatformApp is an organization's own OAuth application for a platform family.
type PlatformApp struct {
	Family   string `db:"family"`
	ClientID string `db:"client_id"`
	// Secret is sealed.
	Secret    []byte    `db:"sealed_secret"`
	UpdatedAt time.Time `db:"updated_at"`
}
