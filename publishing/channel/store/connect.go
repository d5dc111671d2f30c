package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// ConnectState is an unfinished connection attempt.
type ConnectState struct {
	Org  tenancy.OrgID `db:"org_id"`
	Hash []byte        `db:"hash"`
	// Connector is the platform's identifier.
	Connector string `db:"connector"`
	// Channel is the channel to reconnect, or zero for a new one.
	Channel publishing.ChannelID `db:"channel_id"`
	// Person is the person who started the attempt or, for an API key, the key's creator. It is
	// zero if the creator had already left.
	Person tenancy.PersonID `db:"person_id"`
	// Key is zero if a person started the attempt.
	Key tenancy.KeyID `db:"key_id"`
	// Actor is the person's email address or the key's name when the attempt started.
	Actor string `db:"actor"`
	// Impersonator is the instance administrator who impersonated Person, and ImpersonatorName is
	// the administrator's address. Both are zero without impersonation.
	Impersonator     tenancy.PersonID `db:"behind_id"`
	ImpersonatorName string           `db:"behind"`
	// Session is the session that started the attempt, or zero for a key. The attempt ends with the
	// session.
	Session    tenancy.SessionID `db:"session_id"`
	Onboarding bool              `db:"onboarding"`
	ReturnURL  string            `db:"return_url"`
	// Verifier is the sealed OAuth code verifier, or nil for a platform with a form.
	Verifier []byte `db:"sealed_verifier"`
	// AppID is the client id of the OAuth application.
	AppID string `db:"app_id"`
	// Pending is the id that the channel will have. It is zero unless the account is still to be
	// chosen.
	Pending publishing.ChannelID `db:"pending_id"`
	// Candidates holds the accounts to choose from, as JSON. Credential is the sealed credential
	// that gives access to the chosen account.
	Candidates json.RawMessage `db:"candidates"`
	Credential []byte          `db:"credential"`
	// Timezone is the requested time zone. It is set only while the account is still to be chosen.
	Timezone string `db:"timezone"`
	// StateUntil is when the account can no longer be chosen with just the state. If StateUntil is
	// nil, ExpiresAt applies.
	StateUntil *time.Time `db:"state_until"`
	// ExpiresAt is when the attempt expires, by the database clock.
	ExpiresAt time.Time `db:"expires_at"`
}

// By returns the principal who started the attempt, with a role that may connect a channel.
func (s ConnectState) By() tenancy.Principal {
	p := tenancy.Principal{
		Org: s.Org, Person: s.Person, Key: s.Key, Via: tenancy.ViaSession, Name: s.Actor, Impersonator: s.Impersonator,
		ImpersonatorName: s.ImpersonatorName, Session: s.Session, Role: tenancy.RoleUser,
	}
	if !s.Key.IsZero() {
		p.Via = tenancy.ViaKey
	}
	return p
}

var stateColumns = db.Columns[ConnectState]("s")

const stateInsert = `-- publishing.ConnectStateInsert
insert into connect_state (org_id, hash, connector, channel_id, person_id, key_id, onboarding, return_url, expires_at,
  sealed_verifier, app_id, pending_id, candidates, credential, timezone, state_until, actor, behind_id, behind, session_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`

// SaveState inserts a connect state with the given hash. It returns pg.ErrOrgBusy or a Postgres
// error. If the hash already exists, the error is a unique violation.
func SaveState(ctx context.Context, d *db.DB, hash []byte, st ConnectState) error {
	return d.WriteOrg(ctx, st.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateInsert, st.Org, hash, st.Connector, st.Channel, st.Person, st.Key, st.Onboarding,
			st.ReturnURL, st.ExpiresAt, st.Verifier, st.AppID, st.Pending, st.Candidates, st.Credential, st.Timezone,
			st.StateUntil, st.Actor, st.Impersonator, st.ImpersonatorName, st.Session)
	})
}

// stateWanted is an SQL condition. It is true if the member or API key that started the attempt
// still has access. A key keeps its access even if its creator has left.
const stateWanted = `(s.person_id is null or s.key_id is not null
  or exists (select from member m where m.org_id = s.org_id and m.person_id = s.person_id and not m.disabled))
  and (s.key_id is null or exists (select from api_key k
    where k.org_id = s.org_id and k.id = s.key_id
      and coalesce(least(k.expires_at, k.overlap_until) > now(), true)))`

const stateOwner = `-- publishing.ConnectStateOwner
select s.org_id from connect_state s join organization o on o.id = s.org_id
where s.hash = $1 and coalesce(s.state_until, s.expires_at) > now() and o.deleted_at is null and o.suspended_at is null
  and (s.behind_id is null or exists (select from person b
    where b.id = s.behind_id and b.instance_admin and b.deleted_at is null))
  and (s.session_id is null or exists (select from session x where x.id = s.session_id and x.expires_at > now()))
  and (s.session_id is null or s.behind_id is null or exists (select from impersonation i
    where i.session_id = s.session_id and i.org_id = s.org_id and i.person_id = s.person_id))
  and ` + stateWanted

// ownerOfState returns a connect state's organization. It returns pgx.ErrNoRows if the state does
// not exist or has expired, if whoever started the attempt has lost access, or if the organization
// is suspended or deleted.
func ownerOfState(ctx context.Context, d *db.DB, hash []byte) (org tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(stateOwner, hash).QueryRow(func(row pgx.Row) error { return row.Scan(&org) })
	})
	return org, err
}

var stateTry = `-- publishing.ConnectStateTry
update connect_state s set tries = tries + 1
where s.hash = $1 and s.connector = $2 and s.expires_at > now() and s.tries < $3 and s.sealed_verifier is null
returning ` + stateColumns

// TryState counts a form submission and returns the connect state, which may belong to any
// organization. After the given number of submissions, it returns pgx.ErrNoRows. It also returns
// pgx.ErrNoRows in the same cases as UseState.
func TryState(
	ctx context.Context, d *db.DB, hash []byte, connector string, most int,
) (st ConnectState, err error) {
	org, err := ownerOfState(ctx, d, hash)
	if err != nil {
		return st, err
	}
	return oneState(ctx, d, org, stateTry, hash, connector, most)
}

// oneState runs a statement that returns at most one state. It returns pgx.ErrNoRows if the
// statement returns none.
func oneState(
	ctx context.Context, d *db.DB, org tenancy.OrgID, sql string, args ...any,
) (st ConnectState, err error) {
	var rows []ConnectState
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(sql, args...).Query(db.Into(&rows, pgx.RowToStructByName[ConnectState]))
	})
	if err == nil && len(rows) == 0 {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return st, err
	}
	return rows[0], nil
}

const stateTake = `-- publishing.ConnectStateTake
delete from connect_state s where s.hash = $1 and s.expires_at > now() and ` + stateWanted + `
returning s.connector`

// TakeState deletes a connect state, so that it cannot be used again. It returns pgx.ErrNoRows if
// the state does not exist or has expired, or if whoever started the attempt has lost access.
func TakeState(ctx context.Context, d *db.DB, org tenancy.OrgID, hash []byte) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateTake, hash).QueryRow(func(row pgx.Row) error { return row.Scan(new(string)) })
	})
}

var stateUse = `-- publishing.ConnectStateUse
delete from connect_state s where s.hash = $1 and s.connector = $2 and s.expires_at > now()
  and s.sealed_verifier is not null and (s.pending_id is not null) = $3 and ` + stateWanted + `
returning ` + stateColumns

// UseState deletes and returns the state of an OAuth connection attempt, so that it cannot be used
// again. If pending is true, UseState finds only an attempt that is waiting for a person to choose
// the account. Otherwise, it finds only an attempt that is waiting for the platform's redirect.
//
// The state may belong to any organization. UseState returns pgx.ErrNoRows if the state does not
// exist or has expired, if whoever started the attempt has lost access, or if the organization is
// suspended or deleted.
func UseState(
	ctx context.Context, d *db.DB, hash []byte, connector string, pending bool,
) (st ConnectState, err error) {
	org, err := ownerOfState(ctx, d, hash)
	if err != nil {
		return st, err
	}
	return oneState(ctx, d, org, stateUse, hash, connector, pending)
}

// StartedConnect is a ConnectState with the names to show to the person finishing the attempt.
type StartedConnect struct {
	ConnectState
	// Organization is the organization's name.
	Organization string `db:"organization" sql:"o.name"`
	// KeyName is the name of the API key that started the attempt, and Creator is the email address
	// of the person who created the key. Each is empty if unknown or not applicable.
	KeyName string `db:"key_name" sql:"coalesce(k.name, '')"`
	Creator string `db:"creator" sql:"coalesce(p.email, '')"`
}

var statePeek = `-- publishing.ConnectStatePeek
select ` + db.Columns[StartedConnect]("s") + `
from connect_state s join organization o on o.id = s.org_id
left join api_key k on k.org_id = s.org_id and k.id = s.key_id left join person p on p.id = k.created_by
where s.hash = $1 and s.expires_at > now()`

// PeekState returns the connection attempt with the given state, without using up the state. It
// returns pgx.ErrNoRows if the state does not exist or has expired, if whoever started the attempt
// has lost access, or if the organization is suspended or deleted.
func PeekState(ctx context.Context, d *db.DB, hash []byte) (out StartedConnect, err error) {
	org, err := ownerOfState(ctx, d, hash)
	if err != nil {
		return out, err
	}
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(statePeek, hash).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[StartedConnect])
			return err
		})
	})
	return out, err
}

var stateUsePending = `-- publishing.ConnectStateUsePending
delete from connect_state s where s.pending_id = $1 and s.expires_at > now() and ` + stateWanted + `
returning ` + stateColumns

// UsePending is like UseState, but for an attempt whose account is still to be chosen. It finds the
// attempt by pending, the id that the channel will have.
func UsePending(
	ctx context.Context, d *db.DB, org tenancy.OrgID, pending publishing.ChannelID,
) (ConnectState, error) {
	return oneState(ctx, d, org, stateUsePending, pending)
}
