package security

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// Identities lists and unlinks a person's accounts at identity providers.
type Identities interface {
	// Identities returns the identities that the person can sign in with.
	Identities(ctx context.Context, p tenancy.Principal) ([]tenancy.Identity, error)
	// UnlinkIdentity removes an identity. It returns Conflict if the identity is the person's only
	// way to sign in.
	UnlinkIdentity(ctx context.Context, p tenancy.Principal, identity string) error
}

// IdentityRecord is an account at an identity provider.
type IdentityRecord struct {
	ID        string `json:"id"`
	Provider  string `json:"provider" example:"GITHUB"`
	CreatedAt string `json:"createdAt" format:"date-time"`
}

type identitiesOutput struct{ Body []IdentityRecord }

// Identities returns the endpoint that lists the identities that the person can sign in with.
func (a *API) Identities() route.Endpoint {
	return route.JSON(route.Describe("Security", "List the identities that you can sign in with"), a.identities)
}

func (a *API) identities(ctx context.Context, _ *struct{}) (*identitiesOutput, error) {
	list, err := a.deps.Accounts.Identities(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &identitiesOutput{Body: make([]IdentityRecord, 0, len(list))}
	for _, i := range list {
		out.Body = append(out.Body, IdentityRecord{
			ID: i.ID.String(), Provider: i.Provider, CreatedAt: record.FormatTime(i.CreatedAt),
		})
	}
	return out, nil
}

// UnlinkIdentity returns the endpoint that removes an identity, so that the person can no longer
// sign in with it.
func (a *API) UnlinkIdentity() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Security", "Unlink an identity", 404, 409),
		"409 means that you would have no other way to sign in. Set a password first."), a.unlinkIdentity)
}

func (a *API) unlinkIdentity(ctx context.Context, in *record.PathID) (*record.IDOutput, error) {
	if err := a.deps.Accounts.UnlinkIdentity(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return &record.IDOutput{Body: record.IDResponse(*in)}, nil
}
