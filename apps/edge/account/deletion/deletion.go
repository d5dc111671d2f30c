// Package deletion provides the endpoints for deleting and restoring accounts and organizations.
package deletion

import (
	"context"

	"crier/apps/edge/admission"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/platform/fault"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Accounts Deletions
	Gate     *admission.Gate
	Cookies  session.Cookies
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// Deletions deletes and restores accounts and organizations.
type Deletions interface {
	// DeleteAccount requests the deletion of the person's account. It returns Invalid if the person
	// owns an organization that has other members.
	DeleteAccount(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error
	// DeleteOrganization requests the organization's deletion. Only the owner may call it.
	DeleteOrganization(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error
	// RestoreOrganization undoes DeleteOrganization. Only the owner may call it. It returns
	// NotFound if the caller owns no restorable organization with this id.
	RestoreOrganization(ctx context.Context, p tenancy.Principal, org string) error
}

// DeletionRequest is the body of a deletion request.
type DeletionRequest struct {
	record.ProofRequest
	Confirm string `json:"confirm" enum:"DELETE"`
}

type deletionInput struct{ Body DeletionRequest }

// DeletedResponse is the response to a deletion request.
type DeletedResponse struct {
	Deleted bool `json:"deleted" doc:"Always true. The deletion can be undone until the grace period ends."`
}

type deletedOutput struct {
	Cookies []string `header:"Set-Cookie"`
	Logout  string   `header:"logout" doc:"true if the session has ended."`
	Body    DeletedResponse
}

// DeleteAccount returns the endpoint that deletes the person's account after a grace period.
func (a *API) DeleteAccount() route.Endpoint {
	return route.JSON(route.Described(route.Created("Security", "Delete your account", 400, 409, 413),
		"You are signed out everywhere immediately. To undo the deletion, sign in within the grace period and "+
			"confirm. The request is rejected while you own an organization with other members."), a.deleteAccount)
}

func (a *API) deleteAccount(ctx context.Context, in *deletionInput) (*deletedOutput, error) {
	// The API contract requires status 400 here. The guard for personal routes would respond with
	// 403.
	if !request.Principal(ctx).Impersonator.IsZero() {
		return nil, fault.New(fault.Invalid, "deletion.deleteAccount",
			"Only the person themselves can do this. Stop impersonating first.")
	}
	err := a.deps.Gate.Prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.DeleteAccount(ctx, p, in.Body.Proof())
	})
	if err != nil {
		return nil, err
	}
	return &deletedOutput{
		Cookies: a.deps.Cookies.Expired(session.CookieAuth, session.CookieOrg, session.CookiePerson),
		Logout:  "true", Body: DeletedResponse{Deleted: true},
	}, nil
}

// DeleteOrganization returns the endpoint that deletes the organization after a grace period.
func (a *API) DeleteOrganization() route.Endpoint {
	return route.JSON(route.Described(route.Created("Organizations", "Delete the organization", 400, 409, 413),
		"Once the request succeeds, nobody can use the organization and nothing is published. Within the grace "+
			"period, /user/restore-organization undoes the deletion."), a.deleteOrganization)
}

func (a *API) deleteOrganization(ctx context.Context, in *deletionInput) (*deletedOutput, error) {
	err := a.deps.Gate.Prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.DeleteOrganization(ctx, p, in.Body.Proof())
	})
	if err != nil {
		return nil, err
	}
	return &deletedOutput{Cookies: a.deps.Cookies.Expired(session.CookieOrg), Body: DeletedResponse{Deleted: true}}, nil
}

// RestoredResponse is the response to POST /user/restore-organization.
type RestoredResponse struct {
	Restored bool `json:"restored" doc:"Always true."`
}

type restoredOutput struct{ Body RestoredResponse }

// RestoreOrganization returns the endpoint that restores an organization marked for deletion.
func (a *API) RestoreOrganization() route.Endpoint {
	return route.JSON(route.Described(route.Created("Organizations", "Undo an organization's deletion", 400, 404, 413),
		"Only the owner can do this. Posts that came due in the meantime are not published."), a.restoreOrganization)
}

func (a *API) restoreOrganization(ctx context.Context, in *record.IDInput) (*restoredOutput, error) {
	if err := a.deps.Accounts.RestoreOrganization(ctx, request.Principal(ctx), in.Body.ID); err != nil {
		return nil, err
	}
	return &restoredOutput{Body: RestoredResponse{Restored: true}}, nil
}
