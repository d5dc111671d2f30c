package edgetest

import (
	"context"

	"crier/tenancy"
)

func aKey() tenancy.APIKey {
	return tenancy.APIKey{ID: KeyID, Org: OrgID, Name: "Key", Prefix: "crier_ab12", CreatedBy: PersonID, CreatedAt: Day}
}

func (a accounts) Keys(context.Context, tenancy.Principal) ([]tenancy.KeyOf, error) {
	used := Day
	k := aKey()
	k.UsedAt = &used
	return []tenancy.KeyOf{{APIKey: k, CreatedByEmail: Ada}}, a.record("Keys")
}

func (a accounts) CreateKey(_ context.Context, _ tenancy.Principal, n tenancy.NewKey) (string, tenancy.APIKey, error) {
	k := aKey()
	k.Name, k.ExpiresAt = n.Name, n.ExpiresAt
	return APIKey, k, a.record("CreateKey", n.Name)
}

func (a accounts) RenameKey(_ context.Context, _ tenancy.Principal, key, name string) (tenancy.APIKey, error) {
	k := aKey()
	k.Name = name
	return k, a.record("RenameKey", key, name)
}

func (a accounts) DeleteKey(_ context.Context, _ tenancy.Principal, key string) error {
	return a.record("DeleteKey", key)
}

func (a accounts) RotateKey(
	_ context.Context, _ tenancy.Principal, key string, overlap int, _ tenancy.Proof,
) (tenancy.Rotation, error) {
	return tenancy.Rotation{Full: APIKey, New: aKey()}, a.record("RotateKey", key, overlap)
}
