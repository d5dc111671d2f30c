// Package publishtest sets up what the tests of the publishing services need: a separate database
// and its owner's address, a file store, a keyring, a log, and organizations with a channel.
package publishtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/access"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/fixture"
	"crier/tests/syncbuffer"
	"crier/tests/tenant"
)

// Base holds the parts that the services of one process share.
type Base struct {
	*testing.T
	DB      *pg.DB
	Store   *db.DB
	Disk    blob.Store
	Keyring *secret.Keyring
	Log     *syncbuffer.Buffer
	Logger  *slog.Logger
	// Address is the database's URL for its owner.
	Address string
}

// New returns a Base on a separate database.
func New(t *testing.T) *Base {
	t.Helper()
	b := &Base{T: t, Log: &syncbuffer.Buffer{}, Address: dbtest.URL(t)}
	b.Logger = slog.New(slog.NewTextHandler(b.Log, nil))
	b.DB = dbtest.OpenURL(t, b.Address)
	b.Store = &db.DB{DB: b.DB, Node: "test", Waker: Waker{}}
	disk, err := blob.NewDisk(t.TempDir())
	b.OK(err)
	t.Cleanup(func() { _ = disk.Close() })
	b.Disk = disk
	key, err := secret.GenerateKey()
	b.OK(err)
	b.Keyring, err = secret.NewKeyring([]string{key})
	b.OK(err)
	return b
}

// OK ends the test if err is not nil.
func (b *Base) OK(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// Registry returns a registry of the connectors.
func (b *Base) Registry(connectors ...connector.Connector) *connector.Registry {
	b.Helper()
	registry, err := connector.NewRegistry(connectors...)
	b.OK(err)
	return registry
}

// Access returns a Refresher of credentials for the connectors, with the instance's applications.
func (b *Base) Access(registry *connector.Registry, apps map[string]connector.App, http connector.HTTP) *access.Refresher {
	return access.New(access.Deps{
		DB: b.Store, Keyring: b.Keyring, Connectors: registry, HTTP: http, Clock: clock.System{}, Log: b.Logger,
		Apps: apps, Timeout: time.Minute,
	})
}

// Clock executes a statement with the scheduler's role.
func (b *Base) Clock(sql string, args ...any) {
	b.Helper()
	b.OK(b.DB.InRole(b.Context(), pg.Clock, func(tx pgx.Tx) error {
		_, err := tx.Exec(b.Context(), sql, args...)
		return err
	}))
}

// Value returns the only value of a row, read with the scheduler's role.
func Value[T any](b *Base, sql string, args ...any) (v T) {
	b.Helper()
	b.OK(b.DB.InRole(b.Context(), pg.Clock, func(tx pgx.Tx) error {
		return tx.QueryRow(b.Context(), sql, args...).Scan(&v)
	}))
	return v
}

// Organization stores an organization with its owner, and returns the owner.
func (b *Base) Organization() tenancy.Principal {
	b.Helper()
	return tenant.New(b.T, b.DB)
}

// Connect stores a sandbox channel in an organization.
func (b *Base) Connect(org tenancy.OrgID) publishing.ChannelID {
	b.Helper()
	sealed, err := b.Keyring.Seal([]byte(`{}`), org.String())
	b.OK(err)
	c, _, err := channelstore.ConnectChannel(b.Context(), b.Store, fixture.Channel(org), sealed, nil, nil)
	b.OK(err)
	return c.ID
}

// Tenant executes a statement with an organization's role, bypassing the services.
func (b *Base) Tenant(org tenancy.OrgID, sql string, args ...any) {
	b.Helper()
	b.OK(b.DB.InOrg(b.Context(), org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(b.Context(), sql, args...)
		return err
	}))
}

// Waker is a publishing.Waker that wakes nobody.
type Waker struct{}

// Wake does nothing.
func (Waker) Wake(context.Context, tenancy.OrgID, time.Time) {}
