package boot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"crier/platform/env"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/platform/telemetry"
	"crier/publishing/db"
	"crier/publishing/scheduler"
	"crier/tenancy"
	"crier/tenancy/registration"
)

// adminCommand contains the operator's commands. They access the database directly, so the service
// need not be running.
type adminCommand struct {
	Create        adminCreate        `cmd:"" help:"Create an account with its own organization."`
	ResetPassword adminResetPassword `cmd:"" help:"Set a new random password for a person and end all their sessions."`
	ResetMfa      adminResetMFA      `cmd:"" name:"reset-mfa" help:"Remove the second factor of a person and end all their sessions."`
	Grant         adminGrant         `cmd:"" help:"Make a person an administrator of the instance, or revoke that with --end."`
	Organizations adminOrganizations `cmd:"" help:"List the organizations."`
	Suspend       adminSuspend       `cmd:"" help:"Stop an organization: its people, its keys and its posts."`
	Resume        adminResume        `cmd:"" help:"Undo suspend."`
	Events        adminEvents        `cmd:"" help:"List what these commands did and what was purged."`
}

// adminTimeout limits how long one admin command may take.
const adminTimeout = time.Minute

// useAccounts opens the configured database and calls fn with an Accounts that uses the database.
func (t *terminal) useAccounts(fn func(ctx context.Context, a *Accounts) error) error {
	ctx, cancel := context.WithTimeout(t.ctx, adminTimeout)
	defer cancel()
	var cfg Config
	if err := env.Load(ctx, t.lookup, &cfg); err != nil {
		return fmt.Errorf("the configuration is incomplete:\n%w", err)
	}
	log, err := telemetry.NewLogger(t.err, "auto", slog.LevelWarn)
	if err != nil {
		return err
	}
	cfg.Postgres.MaxConns = pg.FewestConns
	app := New(cfg, log)
	opened := errors.Join(storage{app}.openPostgres(ctx), app.openOutbound(ctx))
	if opened == nil {
		opened = app.runAdmin(ctx, fn)
	}
	return errors.Join(opened, storage{app}.closeAdmin(ctx))
}

// runAdmin runs fn with only the parts of the App that the commands need. It opens no port and
// starts no worker.
func (a *App) runAdmin(
	ctx context.Context, fn func(ctx context.Context, a *Accounts) error,
) (err error) {
	if err := (storage{a}).checkSchema(ctx); err != nil {
		return err
	}
	a.keyring, err = a.cfg.Secret.Keyring()
	if err != nil {
		return err
	}
	a.queue = scheduler.NewQueue(a.cfg.Sender, scheduler.Deps{
		DB: &db.DB{DB: a.db, Node: "crier admin", Waker: noWaker{}}, Log: a.log,
	})
	deps, err := a.accountDeps()
	if err != nil {
		return err
	}
	accounts, err := NewAccounts(a.cfg.Accounts, deps)
	if err != nil {
		return err
	}
	return fn(ctx, accounts)
}

func (a storage) closeAdmin(ctx context.Context) error {
	if a.db != nil {
		a.db.Close()
	}
	if a.http == nil {
		return nil
	}
	return a.closeOutbound(ctx)
}

// noWaker is a waker that does nothing. A running service finds the due posts in its next sweep.
type noWaker struct{}

func (noWaker) Wake(context.Context, tenancy.OrgID, time.Time) {}

type adminCreate struct {
	Email         string `arg:"" help:"Email address."`
	Name          string `help:"Name of the person."`
	Organization  string `default:"My organization" help:"Name of the organization."`
	Admin         bool   `help:"Make the person an administrator of the instance."`
	PasswordStdin bool   `help:"Read the password from standard input; otherwise a random one is printed."`
}

func (c adminCreate) Run(t *terminal) error {
	password, err := c.password(t)
	if err != nil {
		return err
	}
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		owner, err := a.CreateOwner(ctx, registration.NewOwner{
			Email: c.Email, Name: c.Name, Password: password, Organization: c.Organization, Instance: c.Admin,
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(t.out, "The account %s owns the organization %s.\n", owner.Name, owner.Org)
		if !c.PasswordStdin {
			fmt.Fprintf(t.out, "Its password is %s\n", password)
		}
		return nil
	})
}

func (c adminCreate) password(t *terminal) (string, error) {
	if !c.PasswordStdin {
		return secret.Token("", 20)
	}
	line, err := bufio.NewReader(t.in).ReadString('\n')
	if err != nil && line == "" {
		return "", errors.New("no password was read from standard input")
	}
	return strings.TrimRight(line, "\r\n"), nil
}

type adminResetPassword struct {
	Email string `arg:"" help:"Email address of the person."`
}

func (c adminResetPassword) Run(t *terminal) error {
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		password, err := a.SetPasswordOf(ctx, c.Email)
		if err == nil {
			fmt.Fprintf(t.out, "The new password is %s\n", password)
		}
		return err
	})
}

type adminResetMFA struct {
	Email string `arg:"" help:"Email address of the person."`
}

func (c adminResetMFA) Run(t *terminal) error {
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		err := a.DisableMFAOf(ctx, c.Email)
		if err == nil {
			fmt.Fprintln(t.out, "The second factor was removed.")
		}
		return err
	})
}

type adminGrant struct {
	Email string `arg:"" help:"Email address of the person."`
	End   bool   `help:"Revoke the rights of an administrator of the instance."`
}

func (c adminGrant) Run(t *terminal) error {
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		err := a.SetInstanceAdmin(ctx, c.Email, !c.End)
		if err == nil {
			fmt.Fprintln(t.out, "Done.")
		}
		return err
	})
}

type adminOrganizations struct{}

// listPage is the number of organizations read at a time.
const listPage = 500

func (adminOrganizations) Run(t *terminal) error {
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tCREATED\tSTATE\tNAME")
		for after := (tenancy.OrgID{}); ; {
			page, err := a.AllOrganizations(ctx, after, listPage)
			if err != nil || len(page) == 0 {
				return errors.Join(err, table.Flush())
			}
			for _, o := range page {
				fmt.Fprintf(
					table, "%s\t%s\t%s\t%s\n", o.ID, o.CreatedAt.UTC().Format(time.DateOnly), stateOf(o), o.Name,
				)
			}
			after = page[len(page)-1].ID
		}
	})
}

func stateOf(o tenancy.Organization) string {
	switch {
	case o.DeletedAt != nil:
		return "to be deleted"
	case o.SuspendedAt != nil:
		return "suspended"
	}
	return "active"
}

type adminSuspend struct {
	ID string `arg:"" help:"Id of the organization."`
}

func (c adminSuspend) Run(t *terminal) error {
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		err := a.Suspend(ctx, c.ID, true)
		if err == nil {
			fmt.Fprintln(t.out, "The organization is suspended: nobody can access it and its posts are not published.")
		}
		return err
	})
}

type adminResume struct {
	ID string `arg:"" help:"Id of the organization."`
}

func (c adminResume) Run(t *terminal) error {
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		err := a.Suspend(ctx, c.ID, false)
		if err == nil {
			fmt.Fprintln(t.out, "The organization is active again.")
		}
		return err
	})
}

type adminEvents struct {
	Limit int `default:"100" help:"How many to list, newest first."`
}

func (c adminEvents) Run(t *terminal) error {
	return t.useAccounts(func(ctx context.Context, a *Accounts) error {
		events, err := a.Events(ctx, max(1, c.Limit))
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		for _, e := range events {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.At.UTC().Format(time.RFC3339), e.Actor, e.Action, e.Subject)
		}
		return table.Flush()
	})
}
