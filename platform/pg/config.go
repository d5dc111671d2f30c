// Package pg is the door to Postgres: one pool per role, the tenant wall entered in one round trip, and transactions that repeat themselves when it is safe.
package pg

import (
	"regexp"
	"runtime"

	"crier/platform/fault"
)

// Role is what a connection may see and do; the full name in Postgres is "<prefix>_<role>".
type Role string

// The roles with a pool. Login is no role at all: the owner, for migrations, locks and LISTEN only.
const (
	Login  Role = ""
	Tenant Role = "tenant" // one organization, all its columns
	Gate   Role = "gate"   // finds whose a credential is
	Clock  Role = "clock"  // claims, finishes and sweeps across organizations, never content
	Sender Role = "sender" // reads what a claimed post needs, writes nothing
	// Retention deletes across organizations what is no longer needed. Its pool has one connection, made when it is
	// used.
	Retention Role = "retention"
	// Keys is Gate for look-ups of API keys alone. Its pool has one connection, so that no other look-up, which anybody can
	// ask for, comes before them.
	Keys Role = "keys"
	// Jobs works on the tables of the background jobs; see DirectPool.
	Jobs Role = "jobs"
)

// PoolerTransaction is the Pooler value for a pooler that lends a connection for one transaction only.
const PoolerTransaction = "transaction"

// Config says where Postgres is and how it is entered.
type Config struct {
	URL        string `env:"DATABASE_URL" doc:"Address of the Postgres database, as the owner of its tables."`
	DirectURL  string `env:"DATABASE_DIRECT_URL" doc:"The same past any pooler; DATABASE_URL when not set."`
	Pooler     string `env:"POOLER" doc:"transaction, when DATABASE_URL leads through a pooler that lends connections per transaction."`
	RolePrefix string `env:"ROLE_PREFIX, default=crier" doc:"First part of the names of the database roles."`
	MaxConns   int32  `env:"DATABASE_MAX_CONNS" doc:"Connections of all pools together; 2 x cores + 2, at least 16, when not set. Half of them serve organizations, each at most with half of those. Look-ups of API keys, the health check and /monitor/queue have one more each, a worker up to 5 for background jobs."`
}

// Direct is the address past any pooler.
func (c Config) Direct() string {
	if c.DirectURL != "" {
		return c.DirectURL
	}
	return c.URL
}

// roleName is the role as Postgres knows it; Login has none, and Keys is that of Gate.
func (c Config) roleName(r Role) string {
	switch r {
	case Login:
		return ""
	case Keys:
		r = Gate
	}
	return c.RolePrefix + "_" + string(r)
}

// minConns is the smallest default with room in every pool (see share); few enough for six processes on Postgres' usual hundred.
const minConns = 16

// FewestConns is the least MaxConns: one connection for each role.
const FewestConns = int32(len(roles))

var prefixForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// checked fills in the defaults and refuses what cannot work.
func (c Config) checked() (Config, error) {
	if c.RolePrefix == "" {
		c.RolePrefix = "crier"
	}
	if c.MaxConns == 0 {
		c.MaxConns = int32(max(minConns, 2*runtime.GOMAXPROCS(0)+2))
	}
	switch {
	case c.URL == "":
		return c, invalid("DATABASE_URL is empty: it must name a Postgres database.")
	case !prefixForm.MatchString(c.RolePrefix):
		return c, invalid("ROLE_PREFIX must be lower-case letters, digits and underscores, at most 40.")
	case c.Pooler != "" && c.Pooler != PoolerTransaction:
		return c, invalid(`POOLER must be empty or "transaction".`)
	case c.Pooler == PoolerTransaction && c.DirectURL == "":
		return c, invalid("POOLER=transaction needs DATABASE_DIRECT_URL: locks and LISTEN do not work through such a pooler.")
	case c.MaxConns < FewestConns:
		return c, invalid("DATABASE_MAX_CONNS must be at least 4: one connection for each role.")
	}
	return c, nil
}

func invalid(message string) error { return fault.New(fault.Invalid, "pg.Open", message) }
