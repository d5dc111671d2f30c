package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

//go:embed sql/find_sessions_by_hash.sql
var findSessionsByHash string

// Choice is an organization that a person can switch to, with the person's role in it.
type Choice struct {
	Org         tenancy.OrgID
	Role        tenancy.Role
	Suspended   bool
	RequiresMFA bool
}

// Session is a live session, its person, and the organizations that the person can choose.
type Session struct {
	ID     tenancy.SessionID
	Person tenancy.PersonID
	Email  string
	// Instance is true if the person is an instance administrator.
	Instance bool
	// HasMFA is true if the person has a confirmed second factor.
	HasMFA bool
	// Choices are the enabled memberships, oldest first.
	Choices []Choice
}

type sessionRow struct {
	Hash        []byte            `db:"hash"`
	ID          tenancy.SessionID `db:"id"`
	Person      tenancy.PersonID  `db:"person_id"`
	Email       string            `db:"email"`
	Instance    bool              `db:"instance_admin"`
	HasMFA      bool              `db:"has_mfa"`
	Org         tenancy.OrgID     `db:"org_id"`
	Role        tenancy.Role      `db:"role"`
	Suspended   bool              `db:"suspended"`
	RequiresMFA bool              `db:"mfa_required"`
}

// SessionsByHash returns the live sessions whose tokens have one of the hashes, keyed by hash. It
// leaves out hashes without a session. It records now as the time when each session was last used,
// at most once a minute per session. SessionsByHash returns Postgres errors unchanged.
//
// SessionsByHash uses its own connection pool (pg.Sessions), so that other account operations
// cannot delay it.
func SessionsByHash(
	ctx context.Context, d *db.DB, hashes [][]byte, now time.Time,
) (sessions map[string]Session, err error) {
	idle := now.Add(-tenancy.SessionIdle)
	err = d.WriteRole(ctx, pg.Sessions, func(b *pgx.Batch) {
		b.Queue(findSessionsByHash, hashes, now, idle).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[sessionRow])
			sessions = groupSessions(found)
			return err
		})
	})
	return sessions, err
}

// groupSessions combines rows with the same hash into one session.
func groupSessions(rows []sessionRow) map[string]Session {
	out := map[string]Session{}
	for _, r := range rows {
		s, known := out[string(r.Hash)]
		if !known {
			s = Session{ID: r.ID, Person: r.Person, Email: r.Email, Instance: r.Instance, HasMFA: r.HasMFA}
		}
		if !r.Org.IsZero() {
			s.Choices = append(s.Choices, Choice{
				Org: r.Org, Role: r.Role, Suspended: r.Suspended, RequiresMFA: r.RequiresMFA,
			})
		}
		out[string(r.Hash)] = s
	}
	return out
}
