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

// Apps manages organizations' OAuth applications. It is safe for concurrent use.
type Apps struct {
	db         *db.DB
	keyring    *secret.Keyring
	connectors *connector.Registry
	access     *access.Refresher
}

// NewApps returns an Apps for the platform families that the given connectors belong to.
func NewApps(d *db.DB, keyring *secret.Keyring, connectors *connector.Registry, a *access.Refresher) *Apps {
	return &Apps{db: d, keyring: keyring, connectors: connectors, access: a}
}

// Apps returns the organization's application for each platform family, in the order of the
// families' first platforms. A family without an application has the source AppNone.
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

// App returns the organization's application for a platform family. family is the identifier of the
// family or of one of its platforms; App returns NotFound for any other value.
func (s *Apps) App(ctx context.Context, p tenancy.Principal, family string) (publishing.PlatformApp, error) {
	f, err := s.family("publishing.App", family)
	if err != nil {
		return publishing.PlatformApp{}, err
	}
	return s.describeApp(ctx, p, f)
}

// SetApp sets the organization's application for a family. It replaces the organization's previous
// application, and takes precedence over the instance's application.
//
// SetApp returns the number of channels that were connected with the previous application. These
// channels publish until their access ends and must then be reconnected. Channels that were
// connected with the instance's application keep using it. SetApp returns NotFound for an unknown
// family and Invalid for invalid client credentials.
func (s *Apps) SetApp(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetPlatformApp,
) (publishing.PlatformApp, int, error) {
	const op = "publishing.SetApp"
	if err := noAgent(op, p); err != nil {
		return publishing.PlatformApp{}, 0, err
	}
	f, err := s.family(op, cmd.Family)
	if err != nil {
		return publishing.PlatformApp{}, 0, err
	}
	// Spaces inside a secret are part of the secret (RFC 6749, appendix A.2).
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

// DeleteApp deletes the organization's application for a family. New channels then use the
// instance's application. DeleteApp returns the number of channels that were connected with the
// deleted application. These channels must be reconnected once their access ends.
//
// DeleteApp succeeds even if the organization has no application. It returns NotFound for an
// unknown family.
func (s *Apps) DeleteApp(
	ctx context.Context, p tenancy.Principal, family string,
) (publishing.PlatformApp, int, error) {
	const op = "publishing.DeleteApp"
	if err := noAgent(op, p); err != nil {
		return publishing.PlatformApp{}, 0, err
	}
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

// families returns all connectors' families, without applications.
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

// Platforms returns this instance's platforms, ordered by identifier, and reports whether accounts
// on each platform can be connected. A platform with a form always accepts accounts. An OAuth
// platform needs an application.
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

// EnteredBy returns the families whose current application was entered by the given person. It runs
// in q's transaction and covers only that transaction's organization. It returns any Postgres
// error.
func (s *Apps) EnteredBy(ctx context.Context, q pg.Querier, person tenancy.PersonID) ([]string, error) {
	return channelstore.AppsBy(ctx, q, person)
}
