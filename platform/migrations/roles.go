package migrations

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/fault"
)

const (
	roleAttempts = 10
	inheritSince = 160000 // Postgres 16 can grant SET without INHERIT
)

var roleNames = [...]string{"tenant", "gate", "clock", "sender", "jobs", "retention"}

// ensureRoles makes the roles and lets the owner enter them. Roles belong to the whole cluster, so another database's
// migration may do the same at the same time, under a lock of its own: what collides is done again.
func ensureRoles(ctx context.Context, conn *pgx.Conn, prefix string) error {
	for _, r := range roleNames {
		name := prefix + "_" + r
		for n := 1; ; n++ {
			err := ensureRole(ctx, conn, name)
			if err == nil {
				break
			}
			if n == roleAttempts || !collided(err) || pause(ctx, time.Duration(n)*lockPoll/10) != nil {
				return fault.Wrap(fault.Unavailable, "schema.Migrate", "The database role "+name+" cannot be made or "+
					"entered: the owner of the database needs CREATEROLE, and a role that someone else made must be "+
					"granted to it (or choose another ROLE_PREFIX).", err)
			}
		}
	}
	return nil
}

const roleRead = `-- schema.RoleRead
select exists (select from pg_roles where rolname = $1), current_setting('server_version_num')::int`

const roleEntered = `-- schema.RoleEntered
select pg_has_role(current_user, $1::name, $2)`

func ensureRole(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	var version int
	err := conn.QueryRow(ctx, roleRead, name).Scan(&exists, &version)
	if err != nil {
		return err
	}
	if !exists {
		if _, err := conn.Exec(ctx, "create role "+name+" nologin"); err != nil {
			return err
		}
	}
	kind, options := "MEMBER", ""
	if version >= inheritSince {
		// The owner may enter the role but does not live in it: it would inherit the policies that see across organizations.
		kind, options = "SET", " with inherit false, set true"
	}
	var member bool
	if err := conn.QueryRow(ctx, roleEntered, name, kind).Scan(&member); err != nil || member {
		return err
	}
	_, err = conn.Exec(ctx, "grant "+name+" to current_user"+options)
	return err
}

// collided returns true when another session made the role or the membership meanwhile.
func collided(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) &&
		(slices.Contains([]string{"42710", "23505"}, pe.Code) || strings.Contains(pe.Message, "tuple concurrently updated"))
}
