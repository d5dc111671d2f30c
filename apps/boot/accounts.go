package boot

import (
	"context"

	"crier/apps/edge"
	"crier/platform/clock"
	"crier/platform/mail"
	"crier/tenancy"
	tenancyservice "crier/tenancy/service"
	"crier/tenancy/signin"
)

// accountDeps returns what the use cases of accounts need, without the revocations of other processes.
func (a *App) accountDeps() (tenancyservice.Deps, error) {
	deps := tenancyservice.Deps{
		DB: a.db, Clock: clock.System{}, Keyring: a.keyring, Publishing: publishingOf{app: a}, Log: a.log,
	}
	switch {
	case a.cfg.Mail.Enabled():
		smtp, err := mail.NewSMTP(a.cfg.Mail, clock.System{}, nil)
		if err != nil {
			return deps, err
		}
		deps.Mail = smtp
	case a.box != nil:
		deps.Mail = a.box
	}
	providers, err := signin.New(a.cfg.SignIn, a.http, clock.System{})
	deps.Providers = providers
	return deps, err
}

// devMail returns the mails of `dev`, nil in other processes.
func (a *App) devMail() edge.DevMail {
	if a.box == nil {
		return nil
	}
	return a.box
}

// publishingOf is the port of accounts to publishing, whose use cases are created later.
type publishingOf struct{ app *App }

func (p publishingOf) Stop(ctx context.Context, org tenancy.OrgID, by string) error {
	return p.app.posts.Stop(ctx, org, by)
}

func (p publishingOf) Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error {
	return p.app.posts.Resume(ctx, org, by, catchUp)
}

func (p publishingOf) Purge(ctx context.Context, org tenancy.OrgID) (int, error) {
	return p.app.posts.Purge(ctx, org)
}
