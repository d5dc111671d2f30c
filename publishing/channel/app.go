package channel

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/platform/paste"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/access"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

// Apps implements the use cases of an organization's applications at platforms. It is safe for
// concurrent use.
type Apps struct {
	db         *db.DB
	keyring    *secret.Keyring
	connectors *connector.Registry
	access     *access.Keeper
}

// NewApps returns the use cases of applications.
func NewApps(d *db.DB, keyring *secret.Keyring, connectors *connector.Registry, a *access.Keeper) *Apps {
	return &Apps{db: d, keyring: keyring, connectors: connectors, access: a}
}

// Apps returns the applications of the organization at all families of platforms, in the order of
// their identifiers.
func (s *Apps) Apps(ctx context.Context, p tenancy.Principal) ([]publishing.PlatformApp, error) {
	out := []publishing.PlatformApp{}
	for _, f := range s.families() {
		app, err := s.describeApp(ctx, p, f)
		if err != nil {
			return nil, err
		}
		out = append(out, app)
	}
	return out, nil
}

// App returns the application of the organization at a family of platforms. family is the
// identifier of the family or of one of its platforms. App returns NotFound if it is neither.
func (s *Apps) App(ctx context.Context, p tenancy.Principal, family string) (publishing.PlatformApp, error) {
	f, err := s.family("publishing.App", family)
	if err != nil {
		return publishing.PlatformApp{}, err
	}
	return s.describeApp(ctx, p, f)
}

// SetApp stores an application of the organization, replacing its previous one or the application
// of the instance. It returns how many channels were connected with the previous one: these publish
// until their access ends, and must then be reconnected. Channels connected with the application of
// the instance keep it. SetApp returns NotFound for an unknown family, and Invalid.
func (s *Apps) SetApp(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetPlatformApp,
) (publishing.PlatformApp, int, error) {
	const op = "publishing.SetApp"
	f, err := s.family(op, cmd.Family)
	if err != nil {
		return publishing.PlatformApp{}, 0, err
	}
	// A space inside a secret is part of it (RFC 6749, appendix A.2).
	cmd.ClientID, cmd.Secret = paste.Trim(cmd.ClientID), paste.Trim(cmd.Secret)
	if err := cmd.Validate(); err != nil {
		return publishing.PlatformApp{}, 0, err
	}
	sealed, err := s.keyring.Seal([]byte(cmd.Secret), p.Org.String())
	if err != nil {
		return publishing.PlatformApp{}, 0, pg.Fault(op, err)
	}
	stored := db.PlatformApp{Family: f.Family, ClientID: cmd.ClientID, Secret: sealed}
	var channels int
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		channels, err = channelstore.SavePlatformApp(ctx, tx, stored, f.Platforms, p.Person)
		if err != nil {
			return err
		}
		return s.db.Audit(ctx, tx, p, tenancy.ActionAppSet, f.Family)
	})
	if err != nil {
		return publishing.PlatformApp{}, 0, db.Fault(op, err)
	}
	out, err := s.describeApp(ctx, p, f)
	return out, channels, err
}

// DeleteApp deletes an application of the organization, so that new channels use the application of
// the instance. It returns how many channels were connected with it, as SetApp does. It succeeds
// even if there is none. It returns NotFound for an unknown family.
func (s *Apps) DeleteApp(
	ctx context.Context, p tenancy.Principal, family string,
) (publishing.PlatformApp, int, error) {
	const op = "publishing.DeleteApp"
	f, err := s.family(op, family)
	if err != nil {
		return publishing.PlatformApp{}, 0, err
	}
	var channels int
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		channels, err = channelstore.DeletePlatformApp(ctx, tx, f.Family, f.Platforms)
		if err != nil {
			return err
		}
		return s.db.Audit(ctx, tx, p, tenancy.ActionAppDeleted, f.Family)
	})
	if err != nil {
		return publishing.PlatformApp{}, 0, db.Fault(op, err)
	}
	out, err := s.describeApp(ctx, p, f)
	return out, channels, err
}

// families returns the families of all connectors, without their applications.
func (s *Apps) families() []publishing.PlatformApp {
	var out []publishing.PlatformApp
	for _, c := range s.connectors.All() {
		a, ok := connector.AuthorizerOf(c)
		if !ok {
			continue
		}
		f, id := a.Family(), c.Describe().ID
		i := slices.IndexFunc(out, func(p publishing.PlatformApp) bool { return p.Family == f.ID })
		if i < 0 {
			out = append(out, publishing.PlatformApp{Family: f.ID, Name: f.Name})
			i = len(out) - 1
		}
		out[i].Platforms = append(out[i].Platforms, id)
	}
	return out
}

func (s *Apps) family(op, name string) (publishing.PlatformApp, error) {
	for _, f := range s.families() {
		if f.Family == name || slices.Contains(f.Platforms, name) {
			return f, nil
		}
	}
	return publishing.PlatformApp{}, fault.New(fault.NotFound, op, "There are no such provider credentials.")
}

func (s *Apps) describeApp(
	ctx context.Context, p tenancy.Principal, f publishing.PlatformApp,
) (publishing.PlatformApp, error) {
	app, source, err := s.access.App(ctx, p.Org, f.Family)
	if err != nil {
		return f, pg.Fault("publishing.App", err)
	}
	f.ClientID, f.Source = app.ClientID, source
	return f, nil
}

// Platforms returns all platforms of this instance, in the order of their identifiers, and whether
// accounts of each can be connected. A platform with a form always accepts accounts; others need an
// application.
func (s *Apps) Platforms(ctx context.Context, p tenancy.Principal) ([]publishing.Platform, error) {
	apps, err := s.Apps(ctx, p)
	if err != nil {
		return nil, err
	}
	var out []publishing.Platform
	for _, c := range s.connectors.All() {
		d := c.Describe()
		v := publishing.Platform{ID: d.ID, Name: d.Name, Capabilities: d.Capabilities, Abilities: []string{}, Authorized: true}
		for _, a := range connector.Abilities(c) {
			v.Abilities = append(v.Abilities, string(a))
		}
		for _, app := range apps {
			if slices.Contains(app.Platforms, d.ID) {
				v.Authorized = app.Source != publishing.AppNone
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// EnteredBy returns the families for which a person entered the current application in the
// organization of q. It runs in the transaction of q and returns the Postgres error.
func (s *Apps) EnteredBy(ctx context.Context, q pg.Querier, person tenancy.PersonID) ([]string, error) {
	return channelstore.AppsBy(ctx, q, person)
}
