// Package tenancy defines the types for identity and access: organizations, people, members, API
// keys, sessions and the principal of a request. It does no I/O.
package tenancy

import (
	"hash/fnv"
	"time"

	"crier/platform/id"
)

// The tags make the ids distinct types; see platform/id.
type (
	OrgTag        struct{}
	PersonTag     struct{}
	KeyTag        struct{}
	SessionTag    struct{}
	IdentityTag   struct{}
	InvitationTag struct{}
	AuditTag      struct{}
	MailTag       struct{}

	ConfirmationTag struct{}

	AgentTag struct{}
	GrantTag struct{}
)

// The ids are UUIDs that sort by creation time.
type (
	OrgID        = id.ID[OrgTag]
	PersonID     = id.ID[PersonTag]
	KeyID        = id.ID[KeyTag]
	SessionID    = id.ID[SessionTag]
	IdentityID   = id.ID[IdentityTag]
	InvitationID = id.ID[InvitationTag]
	AuditID      = id.ID[AuditTag]
	MailID       = id.ID[MailTag]

	ConfirmationID = id.ID[ConfirmationTag]

	AgentID = id.ID[AgentTag]
	GrantID = id.ID[GrantTag]
)

// Shards is the number of shards over which organizations are distributed. It must never change,
// because posts are stored with their shard.
const Shards = 256

// Shard returns the number of the shard that schedules an organization's posts, from 0 to Shards-1.
// It depends only on the organization's id.
func Shard(org OrgID) int {
	u := org.UUID()
	h := fnv.New64a()
	h.Write(u[:])
	sum := h.Sum64()
	return int((sum ^ sum>>32) % Shards)
}

// Role determines a member's rights in an organization.
type Role string

// The roles, from highest to lowest. The member table has a CHECK constraint with the same values.
const (
	RoleSuperAdmin Role = "SUPERADMIN"
	RoleAdmin      Role = "ADMIN"
	RoleUser       Role = "USER"
)

// Valid reports whether the role is one of the constants.
func (r Role) Valid() bool { return r == RoleSuperAdmin || r == RoleAdmin || r == RoleUser }

// Manages reports whether the role may change settings, keys and members.
func (r Role) Manages() bool { return r == RoleSuperAdmin || r == RoleAdmin }

// Outranks reports whether the role may change or remove members with the other role. Owners and
// administrators outrank everyone except the owner.
func (r Role) Outranks(other Role) bool {
	return r == RoleSuperAdmin && other != RoleSuperAdmin || r == RoleAdmin && other != RoleSuperAdmin
}

// Covers reports whether the role may do everything that the other role may.
func (r Role) Covers(other Role) bool { return r == other || r.Outranks(other) }

// Membership is a person's role in an organization. A disabled membership gives no access.
type Membership struct {
	Org      OrgID
	Person   PersonID
	Role     Role
	Disabled bool
}

// KeyPrefix is the prefix of every API key. A string without this prefix is rejected without a
// lookup.
const KeyPrefix = "crier_"

// KeyLength is the number of base62 characters after KeyPrefix.
const KeyLength = 40

// APIKey is a credential with full access to one organization. Only the hash of the key is stored.
type APIKey struct {
	ID   KeyID
	Org  OrgID
	Name string
	// Prefix is the beginning of the key, which helps people recognize the key. Example: crier_Ab3x
	Prefix    string
	CreatedBy PersonID
	// CreatedAt is when the key was created. The full key was shown only then.
	CreatedAt time.Time
	// UsedAt is when the key was last used, to the minute, or nil if it was never used.
	UsedAt *time.Time
	// ExpiresAt is the expiry that a person chose, or nil if the key does not expire.
	ExpiresAt *time.Time
	// OverlapUntil is set for a key that has been replaced. The key works until then, or until
	// ExpiresAt if that is earlier.
	OverlapUntil *time.Time
}

// Ends returns when the key stops working, or nil if it never does.
func (k APIKey) Ends() *time.Time {
	if k.OverlapUntil != nil && (k.ExpiresAt == nil || k.OverlapUntil.Before(*k.ExpiresAt)) {
		return k.OverlapUntil
	}
	return k.ExpiresAt
}

// Label returns the key's name followed by its first characters, because several keys may share a
// name. Example: Zapier (crier_Ab3x…)
func (k APIKey) Label() string { return k.Name + " (" + k.Prefix + "…)" }

// Rotation is the result of replacing a key.
type Rotation struct {
	// Full is the full new key. It cannot be retrieved later.
	Full string
	New  APIKey
	// Old is the replaced key, or zero if there was none.
	Old APIKey
}

// NewKey is the input for creating an API key.
type NewKey struct {
	Name string
	// ExpiresAt is nil if the key does not expire.
	ExpiresAt *time.Time
	// Proof is required if the last sign-in was more than RecentSignIn ago.
	Proof Proof
}

// KeyOf is an API key with its creator's email address. The address is "" if the creator's account
// is gone.
type KeyOf struct {
	APIKey
	CreatedByEmail string
}
