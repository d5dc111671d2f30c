// Package pg connects to Postgres. It provides one connection pool per role, batches that set the
// role and the organization in the same round trip, and transactions that are retried after
// Postgres rolls them back.
package pg

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"runtime"
)

// Role is a database role. It limits the rows and columns that a connection can read and write. Its
// full name in Postgres is "<prefix>_<role>". Example: crier_tenant
type Role string

// All roles except Login and Jobs have a pool. Login, the owner of the tables, is used only for
// migrations, locks and LISTEN.
const (
	// Login means that the connection keeps the role it logged in with.
	Login Role = ""
	// Tenant reads and writes all columns of one organization's rows.
	Tenant Role = "tenant"
	// Gate finds the owner of a credential.
	Gate Role = "gate"
	// Clock claims posts, stores their outcomes and runs sweeps across organizations. It sees
	// neither content nor credentials.
	Clock Role = "clock"
	// Sender reads what is needed to send a claimed post, and writes nothing.
	Sender Role = "sender"
	// Retention deletes expired rows across organizations. Its pool has one connection, opened on
	// first use.
	Retention Role = "retention"
	// Keys is the Gate role with a separate pool for API key lookups. The pool has one connection.
	// Because of the separate pool, key lookups do not wait behind work that needs no credential.
	Keys Role = "keys"
	// Sessions is the Gate role with a separate pool for session lookups. The pool has one
	// connection. Because of the separate pool, account operations that wait for locks do not delay
	// requests that have a session.
	Sessions Role = "sessions"
	// Jobs reads and writes the background jobs' tables; see DirectPool.
	Jobs Role = "jobs"
)

// PoolerTransaction is the value of Config.Pooler for a transaction pooler, which assigns
// connections for one transaction at a time.
const PoolerTransaction = "transaction"

// Config configures the connections to the Postgres database. URL is required. If Pooler is set,
// DirectURL is required too.
type Config struct {
	// URL is used to connect to the database as the owner of its tables. Example:
	// postgres://crier:password@db:5432/crier
	URL string `env:"DATABASE_URL" doc:"Postgres URL for connecting as the owner of the tables; required."`
	// DirectURL is like URL but bypasses any pooler. It defaults to URL. Locks, LISTEN and
	// migrations use it.
	DirectURL string `env:"DATABASE_DIRECT_URL" doc:"Postgres URL that bypasses any pooler; defaults to DATABASE_URL."`
	// Pooler is PoolerTransaction if URL points to a transaction pooler.
	Pooler string `env:"POOLER" doc:"Set to transaction if DATABASE_URL goes through a transaction pooler."`
	// RolePrefix defaults to crier.
	RolePrefix string `env:"ROLE_PREFIX, default=crier" doc:"Prefix of the database role names."`
	// MaxConns is the maximum number of connections in all pools together, not counting the pools
	// of Retention, Keys, Sessions and Jobs. 0 means twice the number of cores plus 2, but at least
	// 16. About half of the connections are in the Tenant pool, and one organization uses at most
	// half of that pool.
	MaxConns int32 `env:"DATABASE_MAX_CONNS" doc:"Number of connections in the shared pools; defaults to 2 x cores + 2, but at least 16."`
}

// Validate returns an error that joins all faults in the configuration. Each fault has the form
// "NAME: sentence".
func (c Config) Validate() error {
	var faults []error
	add := func(name, sentence string) { faults = append(faults, errors.New(name+": "+sentence)) }
	if c.URL == "" {
		add("DATABASE_URL", "is required: the address of a Postgres database")
	}
	if !prefixForm.MatchString(c.prefix()) {
		add("ROLE_PREFIX", "must be lower-case letters, digits and underscores, at most 40")
	}
	switch {
	case c.Pooler != "" && c.Pooler != PoolerTransaction:
		add("POOLER", "must be empty or transaction")
	case c.Pooler == PoolerTransaction && c.DirectURL == "":
		add("DATABASE_DIRECT_URL", "is required with POOLER=transaction: "+
			"locks and LISTEN do not work through such a pooler")
	}
	if c.MaxConns != 0 && (c.MaxConns < FewestConns || c.MaxConns > mostConns) {
		add("DATABASE_MAX_CONNS", fmt.Sprintf("must be a whole number from %d to %d, or 0 for the default",
			FewestConns, mostConns))
	}
	return errors.Join(faults...)
}

// Direct returns the URL that bypasses any pooler: DirectURL, or URL if DirectURL is empty.
func (c Config) Direct() string {
	if c.DirectURL != "" {
		return c.DirectURL
	}
	return c.URL
}

// roleName returns the role's name in Postgres. It is empty for Login. Keys and Sessions use Gate's
// role.
func (c Config) roleName(r Role) string {
	switch r {
	case Login:
		return ""
	case Keys, Sessions:
		r = Gate
	}
	return c.RolePrefix + "_" + string(r)
}

// minConns is the minimum default for MaxConns. It leaves at least two connections for every pool
// that shares MaxConns; see poolSize. With it, three processes that each have an edge and a worker
// stay below Postgres's default limit of 100 connections.
const minConns = 16

// FewestConns is the smallest valid MaxConns: one connection for each role that shares it.
const FewestConns = int32(len(sharedRoles))

var prefixForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// mostConns is roughly the largest number of connections that Postgres can be configured for.
const mostConns = 10_000

func (c Config) prefix() string { return cmp.Or(c.RolePrefix, "crier") }

func (c Config) withDefaults() Config {
	c.RolePrefix = c.prefix()
	if c.MaxConns == 0 {
		c.MaxConns = int32(max(minConns, 2*runtime.GOMAXPROCS(0)+2))
	}
	return c
}
