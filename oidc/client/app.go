package client

import (
	"context"
	"errors"

	"crier/oidc"
	clientstore "crier/oidc/client/store"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// App returns the organization's static application, or NotFound if there is none. Only
// administrators may call App and the other methods that manage the application.
func (s *Clients) App(ctx context.Context, p tenancy.Principal) (out oidc.App, err error) {
	const op = "oidc.App"
	if err := mayManage(op, p); err != nil {
		return out, err
	}
	err = s.db.InOrg(ctx, op, p.Org, func(tx *db.OrgTx) error {
		a, err := clientstore.ReadApp(ctx, tx)
		if err != nil {
			return err
		}
		out, _, err = whole(ctx, tx, a)
		return err
	})
	return out, noApp(op, err)
}

// CreateApp stores the organization's static application and returns it with its secret, which is
// not shown again. It uses a's name, description, picture, redirect URIs and LongLived.
//
// CreateApp returns Invalid with the names of any invalid fields. It returns Conflict if the
// organization already has an application.
func (s *Clients) CreateApp(ctx context.Context, p tenancy.Principal, a oidc.App) (oidc.App, string, error) {
	const op = "oidc.CreateApp"
	if err := checkApp(op, p, &a); err != nil {
		return oidc.App{}, "", err
	}
	if err := db.RejectImpersonator(op, p); err != nil { // it would see the secret
		return oidc.App{}, "", err
	}
	a.Kind, a.Auth, a.Scopes, a.Org, a.URI = oidc.ClientStatic, oidc.AuthPost, oidc.AllScopes(), p.Org, ""
	c, plain, err := newClient(op, a.Client)
	if err != nil {
		return oidc.App{}, "", err
	}
	c.CreatedAt = s.clock.Now()
	a.Client, a.CreatedAt = c.Client, c.CreatedAt
	err = s.db.InOrgAs(ctx, op, p, func(tx *db.OrgTx) error {
		if err := db.Audit(ctx, tx, p.Event(tenancy.ActionOAuthAppCreated, a.Name), a.CreatedAt); err != nil {
			return err
		}
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		if _, err := clientstore.Insert(ctx, gate, c); err != nil {
			return err
		}
		if tx, err = gate.Enter(ctx, p.Org); err != nil {
			return err
		}
		return clientstore.InsertApp(ctx, tx, appRow(a), p.Person)
	})
	if pg.IsUnique(err, "oauth_app_pkey") {
		return oidc.App{}, "", fault.New(fault.Conflict, op, "The organization already has an application: change or delete it.")
	}
	if err != nil {
		return oidc.App{}, "", err
	}
	return a, plain, nil
}

// UpdateApp changes the application's name, description, picture, redirect URIs and LongLived.
// Tokens that have already been issued keep their expiry. UpdateApp returns Invalid with the names
// of any invalid fields, and NotFound if there is no application.
func (s *Clients) UpdateApp(ctx context.Context, p tenancy.Principal, a oidc.App) (out oidc.App, err error) {
	const op = "oidc.UpdateApp"
	if err := checkApp(op, p, &a); err != nil {
		return out, err
	}
	err = s.changeApp(ctx, op, p, tenancy.ActionOAuthAppChanged, func(tx *db.OrgTx, old oidc.App) error {
		out = old
		out.Name, out.RedirectURIs, out.LongLived = a.Name, a.RedirectURIs, a.LongLived
		out.Description, out.Picture = a.Description, a.Picture
		if err := clientstore.UpdateApp(ctx, tx, appRow(out)); err != nil {
			return err
		}
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		return clientstore.UpdateStatic(ctx, gate, out.Client)
	})
	return out, err
}

// DeleteApp deletes the application and all its grants and tokens. The tokens stop working in every
// process within a second.
func (s *Clients) DeleteApp(ctx context.Context, p tenancy.Principal) error {
	const op = "oidc.DeleteApp"
	return s.changeApp(ctx, op, p, tenancy.ActionOAuthAppDeleted, func(tx *db.OrgTx, old oidc.App) error {
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		return clientstore.DeleteStatic(ctx, gate, old.ID)
	})
}

// RotateAppSecret replaces the application's secret and returns the new one. The old secret stops
// working at once. Tokens that have already been issued keep working.
func (s *Clients) RotateAppSecret(ctx context.Context, p tenancy.Principal) (string, error) {
	const op = "oidc.RotateAppSecret"
	if err := db.RejectImpersonator(op, p); err != nil { // it would see the secret
		return "", err
	}
	plain, hash, err := newSecret(op)
	if err != nil {
		return "", err
	}
	err = s.changeApp(ctx, op, p, tenancy.ActionOAuthAppSecret, func(tx *db.OrgTx, old oidc.App) error {
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		return clientstore.SetSecret(ctx, gate, old.ID, hash)
	})
	if err != nil {
		return "", err
	}
	return plain, nil
}

// changeApp locks the application, records the action and runs fn, in one transaction.
func (s *Clients) changeApp(ctx context.Context, op string, p tenancy.Principal, action tenancy.Action,
	fn func(tx *db.OrgTx, old oidc.App) error) error {
	if err := mayManage(op, p); err != nil {
		return err
	}
	err := s.db.InOrgAs(ctx, op, p, func(tx *db.OrgTx) error {
		a, err := clientstore.LockApp(ctx, tx)
		if err != nil {
			return err
		}
		old, tx, err := whole(ctx, tx, a)
		if err != nil {
			return err
		}
		if err := db.Audit(ctx, tx, p.Event(action, old.Name), s.clock.Now()); err != nil {
			return err
		}
		return fn(tx, old)
	})
	return noApp(op, err)
}

// whole returns an application with its client. The caller must continue with the returned
// transaction.
func whole(ctx context.Context, tx *db.OrgTx, a clientstore.App) (oidc.App, *db.OrgTx, error) {
	org := tx.Org
	gate, err := tx.Leave(ctx)
	if err != nil {
		return oidc.App{}, nil, err
	}
	c, err := clientstore.ByID(ctx, gate, a.Client)
	if err != nil {
		return oidc.App{}, nil, err
	}
	tx, err = gate.Enter(ctx, org)
	return oidc.App{Client: c.Client, Description: a.Description, Picture: a.Picture, CreatedAt: a.CreatedAt}, tx, err
}

// checkApp checks that the principal may manage the application. It also cleans and validates the
// input.
func checkApp(op string, p tenancy.Principal, a *oidc.App) error {
	if err := mayManage(op, p); err != nil {
		return err
	}
	const maxName, maxDescription, maxPicture = 100, 500, 1000
	var in tenancy.Inputs
	a.Name = in.Name("name", a.Name, 1, maxName)
	a.Description = in.Text("description", a.Description, maxDescription)
	a.Picture = in.Text("picture", a.Picture, maxPicture)
	var refused *oidc.Error
	if errors.As(oidc.CheckRedirectURIs(a.RedirectURIs), &refused) {
		in.Check(false, "redirectUrl", refused.Message)
	}
	return in.Err(op)
}

func mayManage(op string, p tenancy.Principal) error {
	if p.Role.Manages() && p.Access == tenancy.AccessFull && p.Agent.IsZero() {
		return nil
	}
	return fault.New(fault.Forbidden, op, "Only an administrator may manage the organization's application.")
}

func appRow(a oidc.App) clientstore.App {
	return clientstore.App{Client: a.ID, Description: a.Description, Picture: a.Picture, CreatedAt: a.CreatedAt}
}

// noApp converts pgx.ErrNoRows to NotFound.
func noApp(op string, err error) error {
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "The organization has no application.")
	}
	return err
}
