package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

// App is a row of the oauth_app table.
type App struct {
	Client      tenancy.AgentID `db:"client"`
	Description string          `db:"description"`
	Picture     string          `db:"picture"`
	CreatedAt   time.Time       `db:"created_at"`
}

const appGet = `-- oidc.AppGet
select client, description, picture, created_at from oauth_app where org_id = $1`

// ReadApp returns the organization's application, or pgx.ErrNoRows.
func ReadApp(ctx context.Context, tx *db.OrgTx) (App, error) {
	return db.One[App](ctx, tx, appGet, tx.Org)
}

// LockApp is like ReadApp, but also locks the row until the end of the transaction.
func LockApp(ctx context.Context, tx *db.OrgTx) (App, error) {
	return db.One[App](ctx, tx, appGet+" for update", tx.Org)
}

const appInsert = `-- oidc.AppInsert
insert into oauth_app (org_id, client, description, picture, created_by, created_at) values ($1, $2, $3, $4, $5, $6)`

// InsertApp stores the organization's application. It returns a violation of oauth_app_pkey if the
// organization already has one.
func InsertApp(ctx context.Context, tx *db.OrgTx, a App, by tenancy.PersonID) error {
	_, err := db.Exec(ctx, tx, appInsert, tx.Org, a.Client, a.Description, a.Picture, by, a.CreatedAt)
	return err
}

const appUpdate = `-- oidc.AppUpdate
update oauth_app set description = $2, picture = $3 where org_id = $1`

// UpdateApp replaces the application's description and picture. It returns pgx.ErrNoRows if the
// organization has no application.
func UpdateApp(ctx context.Context, tx *db.OrgTx, a App) error {
	return db.Change(ctx, tx, appUpdate, tx.Org, a.Description, a.Picture)
}
