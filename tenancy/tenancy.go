// Package tenancy holds the words for whose things are: organizations, people, members, API keys, sessions and the principal of a request.
package tenancy

import (
	"hash/fnv"
	"time"

	"crier/platform/id"
)

// The tags that keep the ids of this domain apart (platform/id).
type (
	OrgTag     struct{}
	PersonTag  struct{}
	KeyTag     struct{}
	SessionTag struct{}
)

// The ids of this domain.
type (
	OrgID     = id.ID[OrgTag]
	PersonID  = id.ID[PersonTag]
	KeyID     = id.ID[KeyTag]
	SessionID = id.ID[SessionTag]
)

// Shards is the number of shards that organizations are spread over.
const Shards = 256

// Shard tells which shard schedules an organization; it never changes for an organization.
func Shard(org OrgID) int {
	u := org.UUID()
	h := fnv.New64a()
	h.Write(u[:])
	sum := h.Sum64()
	return int((sum ^ sum>>32) % Shards)
}

// Role is what a member may do.
type Role string

// The roles, from the highest to the lowest.
const (
	RoleSuperAdmin Role = "SUPERADMIN"
	RoleAdmin      Role = "ADMIN"
	RoleUser       Role = "USER"
)

// Valid tells whether the role exists.
func (r Role) Valid() bool { return r == RoleSuperAdmin || r == RoleAdmin || r == RoleUser }

// Manages tells whether the role may change settings, keys and members.
func (r Role) Manages() bool { return r == RoleSuperAdmin || r == RoleAdmin }

// Organization is a tenant.
type Organization struct {
	ID          OrgID
	Name        string
	Description string
	Timezone    string // as LoadZone reads it: an IANA name or a fixed offset
	CreatedAt   time.Time
}

// Person is somebody who can sign in. The e-mail address is lower case and unique.
type Person struct {
	ID           PersonID
	Email        string
	Name         string
	PasswordHash string // argon2id in PHC form, empty when sign-in is by a provider
	Activated    bool
	CreatedAt    time.Time
}

// Membership is a person's place in an organization.
type Membership struct {
	Org      OrgID
	Person   PersonID
	Role     Role
	Disabled bool
}

// KeyPrefix begins every API key.
const KeyPrefix = "crier_"

// KeyLength is how many base62 characters follow KeyPrefix.
const KeyLength = 40

// APIKey is a credential of one organization with full access to it; only its hash is stored.
type APIKey struct {
	ID        KeyID
	Org       OrgID
	Name      string
	Prefix    string // the first characters, to recognise it by
	CreatedBy PersonID
	CreatedAt time.Time
	ExpiresAt *time.Time
}

// How long a session lives without use, and at most.
const (
	SessionIdle     = 12 * time.Hour
	SessionAbsolute = 30 * 24 * time.Hour
)

// Via says by which kind of credential a request came in.
type Via string

// The kinds of credential.
const (
	ViaKey     Via = "key"
	ViaSession Via = "session"
)

// Principal is who a request acts for: exactly one organization, and the person when a session carries it.
type Principal struct {
	Org     OrgID
	Person  PersonID // zero for an API key without a creator
	Role    Role
	Via     Via
	Key     KeyID     // when Via is ViaKey
	Session SessionID // when Via is ViaSession
}
