package appapi

import (
	"context"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/tenancy"
)

// DeletionRequest is the body of requests for a deletion.
type DeletionRequest struct {
	ProofRequest
	Confirm string `json:"confirm" enum:"DELETE"`
}

type deletionInput struct{ Body DeletionRequest }

// DeletedAnswer is the answer to a request for a deletion.
type DeletedAnswer struct {
	Deleted bool `json:"deleted" doc:"Always true. Until the grace period ends, the deletion can be undone."`
}

type deletedOutput struct {
	Cookies []string `header:"Set-Cookie"`
	Logout  string   `header:"logout" doc:"true when the session has ended."`
	Body    DeletedAnswer
}

// DeleteAccount returns the endpoint that deletes the account of the person after a grace period.
func (a *API) DeleteAccount() route.Endpoint {
	return route.JSON(described(created(tagSecurity, "Delete your account", 400, 409, 413),
		"Signs you out everywhere at once. Signing in and confirming within the grace period undoes it. "+
			"It is refused while you own an organization that has other members."), a.deleteAccount)
}

func (a *API) deleteAccount(ctx context.Context, in *deletionInput) (*deletedOutput, error) {
	if !request.Principal(ctx).Behind.IsZero() { // 400 by the contract: the guard of personal routes answers 403
		return nil, fault.New(fault.Invalid, "appapi.deleteAccount",
			"Only the person may do this: stop acting as somebody else first.")
	}
	err := a.prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.DeleteAccount(ctx, p, in.Body.proof())
	})
	if err != nil {
		return nil, err
	}
	return &deletedOutput{
		Cookies: a.expired(cookieAuth, cookieOrg, cookiePerson),
		Logout:  "true", Body: DeletedAnswer{Deleted: true},
	}, nil
}

// DeleteOrganization returns the endpoint that deletes the organization after a grace period.
func (a *API) DeleteOrganization() route.Endpoint {
	return route.JSON(described(created(tagOrganizations, "Delete the organization", 400, 409, 413),
		"Nobody can use it from now on, and nothing is published. "+
			"/user/restore-organization undoes it within the grace period."), a.deleteOrganization)
}

func (a *API) deleteOrganization(ctx context.Context, in *deletionInput) (*deletedOutput, error) {
	err := a.prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.DeleteOrganization(ctx, p, in.Body.proof())
	})
	if err != nil {
		return nil, err
	}
	return &deletedOutput{Cookies: a.expired(cookieOrg), Body: DeletedAnswer{Deleted: true}}, nil
}

// RestoredAnswer is the answer of POST /user/restore-organization.
type RestoredAnswer struct {
	Restored bool `json:"restored" doc:"Always true."`
}

type restoredOutput struct{ Body RestoredAnswer }

// RestoreOrganization returns the endpoint that undoes the deletion of an organization.
func (a *API) RestoreOrganization() route.Endpoint {
	return route.JSON(described(created(tagOrganizations, "Undo the deletion of an organization", 400, 404, 413),
		"Only for its owner. Posts that fell due meanwhile are not published."), a.restoreOrganization)
}

func (a *API) restoreOrganization(ctx context.Context, in *idInput) (*restoredOutput, error) {
	if err := a.deps.Accounts.RestoreOrganization(ctx, request.Principal(ctx), in.Body.ID); err != nil {
		return nil, err
	}
	return &restoredOutput{Body: RestoredAnswer{Restored: true}}, nil
}
