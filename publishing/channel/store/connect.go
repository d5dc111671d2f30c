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

// ConnectState is a connect that was started and is not finished.
type ConnectState struct {
	Org  tenancy.OrgID `db:"org_id"`
	Hash []byte        `db:"hash"`
	// Connector is the identifier of the platform.
	Connector string `db:"connector"`
	// Channel is the channel to reconnect, or zero for a new one.
	Channel publishing.ChannelID `db:"channel_id"`
	// Person is who started it, or who made the API key that started it; zero if that person had
	// left.
	Person tenancy.PersonID `db:"person_id"`
	// Key is zero if a person started it.
	Key tenancy.KeyID `db:"key_id"`
	// Actor is the address of the person or the name of the key at that time.
	Actor string `db:"actor"`
	// Behind is the instance administrator who impersonated Person, and BehindName their address;
	// both are zero if there was none.
	Behind     tenancy.PersonID `db:"behind_id"`
	BehindName string           `db:"behind"`
	// Session is the session that started the connect, zero for a key. The connect ends with it.
	Session    tenancy.SessionID `db:"session_id"`
	Onboarding bool              `db:"onboarding"`
	ReturnURL  string            `db:"return_url"`
	// Verifier is the sealed code verifier of a connect by OAuth, or nil for one with a form.
	Verifier []byte `db:"sealed_verifier"`
	// AppID is the client id of the application of a connect by OAuth.
	AppID string `db:"app_id"`
	// Pending is the id that the channel will have if its account must still be chosen; otherwise
	// zero.
	Pending publishing.ChannelID `db:"pending_id"`
	// Candidates are the accounts to choose from, as JSON, and Credential is the sealed access.
	Candidates json.RawMessage `db:"candidates"`
	Credential []byte          `db:"credential"`
	// Timezone is the requested time zone if the account must still be chosen.
	Timezone string `db:"timezone"`
	// StateUntil is until when the account can be chosen with the state alone. If it is nil, that
	// is ExpiresAt.
	StateUntil *time.Time `db:"state_until"`
	// ExpiresAt is when the connect expires, by the clock of the database.
	ExpiresAt time.Time `db:"expires_at"`
}

// By returns the principal who started the connect, with the role that a connect needs.
func (s ConnectState) By() tenancy.Principal {
	p := tenancy.Principal{
		Org: s.Org, Person: s.Person, Key: s.Key, Via: tenancy.ViaSession, Name: s.Actor, Behind: s.Behind,
		BehindName: s.BehindName, Session: s.Session, Role: tenancy.RoleUser,
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

// SaveState inserts a connect state under its hash. It returns pg.ErrOrgBusy or the Postgres error,
// which is a unique violation if the hash exists.
func SaveState(ctx context.Context, d *db.DB, hash []byte, st ConnectState) error {
	return d.WriteOrg(ctx, st.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateInsert, st.Org, hash, st.Connector, st.Channel, st.Person, st.Key, st.Onboarding,
			st.ReturnURL, st.ExpiresAt, st.Verifier, st.AppID, st.Pending, st.Candidates, st.Credential, st.Timezone,
			st.StateUntil, st.Actor, st.Behind, st.BehindName, st.Session)
	})
}

// stateWanted is the condition that whoever started a connect still has access: a member, or an API
// key, even if its creator has left.
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

// ownerOfState returns the organization of a connect state. It returns pgx.ErrNoRows if there is
// none, it has expired, whoever started it has lost access, or the organization is suspended or
// deleted.
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

// TryState counts a try of a connect with a form and returns its state, whose organization it finds
// by the hash. It returns pgx.ErrNoRows if there is none, it has expired, it was tried most times
// already, whoever started it has lost access, or the organization is suspended or deleted.
func TryState(
	ctx context.Context, d *db.DB, hash []byte, connector string, most int,
) (st ConnectState, err error) {
	org, err := ownerOfState(ctx, d, hash)
	if err != nil {
		return st, err
	}
	return oneState(ctx, d, org, stateTry, hash, connector, most)
}

// oneState runs a statement that returns at most one state. It returns pgx.ErrNoRows if there is
// none.
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

// TakeState deletes a connect state, so that it is used only once. It returns pgx.ErrNoRows if
// there is none, it has expired, or whoever started it has lost access.
func TakeState(ctx context.Context, d *db.DB, org tenancy.OrgID, hash []byte) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateTake, hash).QueryRow(func(row pgx.Row) error { return row.Scan(new(string)) })
	})
}

var stateUse = `-- publishing.ConnectStateUse
delete from connect_state s where s.hash = $1 and s.connector = $2 and s.expires_at > now()
  and s.sealed_verifier is not null and (s.pending_id is not null) = $3 and ` + stateWanted + `
returning ` + stateColumns

// UseState deletes and returns the state of a connect by OAuth, so that it is used only once. If
// pending is true, the state must be one whose account is still to be chosen; otherwise, one that
// waits for the platform's response.
//
// It finds the organization by the hash. It returns pgx.ErrNoRows if there is no such state, it has
// expired, whoever started it has lost access, or the organization is suspended or deleted.
func UseState(
	ctx context.Context, d *db.DB, hash []byte, connector string, pending bool,
) (st ConnectState, err error) {
	org, err := ownerOfState(ctx, d, hash)
	if err != nil {
		return st, err
	}
	return oneState(ctx, d, org, stateUse, hash, connector, pending)
}

// StartedConnect describes a connect before it is finished.
type StartedConnect struct {
	ConnectState
	// Organization is the name of the organization.
	Organization string `db:"organization" sql:"o.name"`
	// KeyName is the name of the API key that started it, and Creator the address of the member who
	// made the key. Either is empty if there is none.
	KeyName string `db:"key_name" sql:"coalesce(k.name, '')"`
	Creator string `db:"creator" sql:"coalesce(p.email, '')"`
}

var statePeek = `-- publishing.ConnectStatePeek
select ` + db.Columns[StartedConnect]("s") + `
from connect_state s join organization o on o.id = s.org_id
left join api_key k on k.org_id = s.org_id and k.id = s.key_id left join person p on p.id = k.created_by
where s.hash = $1 and s.expires_at > now()`

// PeekState returns a connect by its state without using the state. It returns pgx.ErrNoRows if
// UseState would not find it.
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

// UsePending is UseState for a connect whose account is still to be chosen, by the id that the
// channel will have.
func UsePending(
	ctx context.Context, d *db.DB, org tenancy.OrgID, pending publishing.ChannelID,
) (ConnectState, error) {
	return oneState(ctx, d, org, stateUsePending, pending)
}
