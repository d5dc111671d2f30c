// Package tenancy defines the types of identity and access: organizations, people, members, API keys, sessions and the
// principal of a request. It does no I/O.
package tenancy

import (
	"hash/fnv"
	"time"

	"crier/platform/id"
)

// The tags that make the ids of this domain distinct types (platform/id).
type (
	OrgTag     struct{}
	PersonTag  struct{}
	KeyTag     struct{}
	SessionTag struct{}
)

// The ids are UUIDs that sort by the time at which they were made.
type (
	OrgID     = id.ID[OrgTag]
	PersonID  = id.ID[PersonTag]
	KeyID     = id.ID[KeyTag]
	SessionID = id.ID[SessionTag]
)

// Shards is the number of shards that organizations are distributed over. It must never change: posts are stored with
// their shard.
const Shards = 256

// Shard returns the shard, from 0 to Shards-1, that schedules an organization. It depends on the id alone.
func Shard(org OrgID) int {
	u := org.UUID()
	h := fnv.New64a()
	h.Write(u[:])
	sum := h.Sum64()
	return int((sum ^ sum>>32) % Shards)
}

// Role is the set of rights of a member in an organization.
type Role string

// The roles, from the highest to the lowest. The table member has a CHECK with the same list.
const (
	RoleSuperAdmin Role = "SUPERADMIN"
	RoleAdmin      Role = "ADMIN"
	RoleUser       Role = "USER"
)

// Valid reports whether the role is one that the table member can store.
func (r Role) Valid() bool { return r == RoleSuperAdmin || r == RoleAdmin || r == RoleUser }

// Manages reports whether the role may change settings, keys and members.
func (r Role) Manages() bool { return r == RoleSuperAdmin || r == RoleAdmin }

// Organization is a tenant. Row-level security separates the rows of organizations.
type Organization struct {
	ID          OrgID
	Name        string
	Description string
	// Timezone is a name that LoadZone accepts: an IANA name or a fixed offset.
	Timezone string
	// CreatedAt is in UTC, as all times of the service.
	CreatedAt time.Time
}

// Person is a user account. A person can be a member of several organizations.
type Person struct {
	ID PersonID
	// Email is in lower case and unique.
	Email string
	Name  string
	// PasswordHash is argon2id in PHC format. It is empty when the person signs in with an identity provider.
	PasswordHash string
	// Activated is true when the person has confirmed the address. Log-in is refused before.
	Activated bool
	// CreatedAt is in UTC, like all times of the service.
	CreatedAt time.Time
}

// Membership is the role of a person in an organization. A disabled membership gives no access.
type Membership struct {
	Org      OrgID
	Person   PersonID
	Role     Role
	Disabled bool
}

// KeyPrefix is the prefix of every API key. A credential without it is refused without a look-up.
const KeyPrefix = "crier_"

// KeyLength is the number of base62 characters after KeyPrefix.
const KeyLength = 40

// APIKey is a credential of one organization with full access to it. Only its hash is stored.
type APIKey struct {
	ID   KeyID
	Org  OrgID
	Name string
	// Prefix is the first characters of the key, by which people recognize it.
	Prefix    string
	CreatedBy PersonID
	// CreatedAt is the only time at which the key itself was shown.
	CreatedAt time.Time
	// ExpiresAt is nil for a key that does not expire.
	ExpiresAt *time.Time
}

const (
	// SessionIdle is how long a session lives without use. The last use is stored to the minute.
	SessionIdle = 12 * time.Hour
	// SessionAbsolute is how long a session lives at most.
	SessionAbsolute = 30 * 24 * time.Hour
)

// Via is the kind of credential that authenticated a request.
type Via string

// The kinds of credential: an API key of an organization, and the session of a person who has logged in.
const (
	ViaKey     Via = "key"
	ViaSession Via = "session"
)

// Principal is the identity that a request acts for: exactly one organization, and a person.
type Principal struct {
	Org OrgID
	// Person is the person of the session or the creator of the API key. It is zero for a key without a creator.
	Person PersonID
	Role   Role
	Via    Via
	// Key is set when Via is ViaKey.
	Key KeyID
	// Session is set when Via is ViaSession.
	Session SessionID
}
