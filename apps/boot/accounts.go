package boot

import (
	"context"
	"sync"

	"crier/actors/cluster"
	"crier/apps/edge/dev"
	"crier/platform/clock"
	"crier/platform/mail"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/signin"
)

// openAccounts creates the Accounts and the OAuth server. It also starts a goroutine that receives
// key and token revocations and, in a process with the edge role, one that checks the identity
// providers. closeAccounts stops both goroutines.
func (a *App) openAccounts(ctx context.Context) error {
	deps, err := a.accountDeps()
	if err != nil {
		return err
	}
	listening := &credential.Listening{}
	deps.Revocations = listening
	a.Accounts, err = NewAccounts(a.cfg.Accounts, deps)
	if err != nil {
		return err
	}
	a.OAuth = NewOAuth(a.cfg.OAuth, OAuthDeps{
		Accounts: a.Accounts, Clock: clock.System{}, Fetch: a.http.Transport(), Catalog: catalogOf{app: a},
		Revocations: listening,
	})
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var listener sync.WaitGroup
	listener.Go(func() { a.Accounts.Listen(life, listening, a.OAuth.Grants.Cached()) })
	if a.cfg.Cluster.Has(cluster.RoleEdge) {
		listener.Go(func() { a.providers.Check(life, a.log) })
	}
	a.endListening = func() {
		end()
		listener.Wait()
	}
	return nil
}

func (a *App) closeAccounts(context.Context) error {
	if a.endListening != nil {
		a.endListening()
	}
	if a.providers != nil {
		a.providers.Close()
	}
	return nil
}

// accountDeps returns the dependencies of Accounts, except for key revocations.
func (a *App) accountDeps() (deps AccountsDeps, err error) {
	deps = AccountsDeps{
		DB: a.db, Clock: clock.System{}, Keyring: a.keyring, Publishing: publishingOf{app: a}, Log: a.log,
	}
	if a.plans != nil {
		deps.Quota, deps.Plans = a.plans, a.plans
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
	a.mailer = deps.Mail
	a.providers, err = signin.New(a.cfg.SignIn, outbound.Deps{Log: a.log}, clock.System{})
	deps.Providers = a.providers
	return deps, err
}

// devMail returns the emails that `dev` has sent, or nil in other processes.
func (a *App) devMail() dev.Mails {
	if a.box == nil {
		return nil
	}
	return a.box
}

// publishingOf gives Accounts access to the publishing use cases, which are created later.
type publishingOf struct{ app *App }

func (p publishingOf) Stop(ctx context.Context, org tenancy.OrgID, by string) error {
	return p.app.queue.Stop(ctx, org, by)
}

func (p publishingOf) Resume(ctx context.Context, org tenancy.OrgID, by string, catchUp bool) error {
	return p.app.queue.Resume(ctx, org, by, catchUp)
}

func (p publishingOf) Stopped(ctx context.Context, orgs []tenancy.OrgID) ([]tenancy.OrgID, error) {
	return p.app.queue.Stopped(ctx, orgs)
}

func (p publishingOf) TakeMade(ctx context.Context, q pg.Querier, m tenancy.Maker) (tenancy.CreatedBy, error) {
	made, err := tenancy.CreatedBy{}, error(nil)
	if made.Webhooks, err = p.app.hooks.TakeMade(ctx, q, m.Person, m.Revoke); err != nil {
		return made, err
	}
	if made.Apps, err = p.app.apps.EnteredBy(ctx, q, m.Person); err != nil || !m.Leaves {
		return made, err
	}
	made.Reviews, err = p.app.approvals.MailedBy(ctx, q, m.Person)
	return made, err
}

func (p publishingOf) Purge(ctx context.Context, org tenancy.OrgID) (int, error) {
	return p.app.purger.Purge(ctx, org)
}

func (p publishingOf) ForgetReviewer(ctx context.Context, email string) error {
	return p.app.approvals.ForgetReviewer(ctx, email)
}
