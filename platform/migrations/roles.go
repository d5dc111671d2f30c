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
	inheritSince = 160000 // since Postgres 16, SET can be granted without INHERIT

	codeDuplicateObject = "42710"
	codeUniqueViolation = "23505"
)

var roleNames = [...]string{"tenant", "gate", "clock", "sender", "jobs", "retention"}

// ensureRoles creates the roles and allows the owner to use them. A server's roles are shared by
// all its databases, but each database has its own migration lock. ensureRoles therefore retries if
// it collides with another database's migration.
func ensureRoles(ctx context.Context, conn *pgx.Conn, prefix string) error {
	for _, r := range roleNames {
		name := prefix + "_" + r
		for n := 1; ; n++ {
			err := ensureRole(ctx, conn, name)
			if err == nil {
				break
			}
			if n == roleAttempts || !collided(err) || pause(ctx, time.Duration(n)*lockPoll/10) != nil {
				message := "The database role " + name + " cannot be created or entered: the owner of the database " +
					"needs CREATEROLE, and a role that someone else created must be granted to it (or choose another " +
					"ROLE_PREFIX)."
				return fault.Wrap(fault.Unavailable, "migrations.Migrate", message, err)
			}
		}
	}
	return nil
}

const roleRead = `-- migrations.RoleRead
select exists (select from pg_roles where rolname = $1), current_setting('server_version_num')::int`

const roleEntered = `-- migrations.RoleEntered
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
		// Without inheritance, the policies that allow access to all organizations do not apply to
		// the owner.
		kind, options = "SET", " with inherit false, set true"
	}
	var member bool
	if err := conn.QueryRow(ctx, roleEntered, name, kind).Scan(&member); err != nil || member {
		return err
	}
	_, err = conn.Exec(ctx, "grant "+name+" to current_user"+options)
	return err
}

// collided reports whether another session created the role or the membership at the same time.
func collided(err error) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return false
	}
	return slices.Contains([]string{codeDuplicateObject, codeUniqueViolation}, pe.Code) ||
		strings.Contains(pe.Message, "tuple concurrently updated")
}
