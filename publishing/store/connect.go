package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// ConnectState is a connect that was begun and is not finished.
type ConnectState struct {
	Org       tenancy.OrgID
	Connector string
	// Channel is the channel to reconnect, zero for a new one.
	Channel    publishing.ChannelID
	Person     tenancy.PersonID
	Onboarding bool
	ReturnURL  string
	// ExpiresAt is when it can no longer be finished, by the clock of the database.
	ExpiresAt time.Time
}

const stateInsert = `-- publishing.ConnectStateInsert
insert into connect_state (org_id, hash, connector, channel_id, person_id, onboarding, return_url, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)`

// SaveState inserts a connect state under its hash. It returns pg.ErrOrgBusy or the error of Postgres, which is a
// unique violation for a hash that exists.
func (s *Store) SaveState(ctx context.Context, hash []byte, st ConnectState) error {
	return s.db.WriteOrg(ctx, st.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateInsert, st.Org, hash, st.Connector, st.Channel, st.Person, st.Onboarding, st.ReturnURL,
			st.ExpiresAt)
	})
}

const stateOwner = `-- publishing.ConnectStateOwner
select s.org_id from connect_state s join organization o on o.id = s.org_id
where s.hash = $1 and s.expires_at > now() and o.deleted_at is null and o.suspended_at is null and (s.person_id is null
  or exists (select from member m where m.org_id = s.org_id and m.person_id = s.person_id and not m.disabled))`

const stateTry = `-- publishing.ConnectStateTry
update connect_state set tries = tries + 1
where hash = $1 and connector = $2 and expires_at > now() and tries < $3
returning connector, channel_id, person_id, onboarding, return_url, expires_at`

// TryState counts a try of a connect state and returns the state, whose organization it finds by the hash. It returns
// pgx.ErrNoRows when there is none that has not expired, when it was tried most times already, and when who began it is
// no member any more or nobody may use the organization.
func (s *Store) TryState(
	ctx context.Context, hash []byte, connector string, most int,
) (st ConnectState, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(stateOwner, hash).QueryRow(func(row pgx.Row) error { return row.Scan(&st.Org) })
	})
	if err != nil {
		return st, err
	}
	err = s.db.WriteOrg(ctx, st.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateTry, hash, connector, most).QueryRow(func(row pgx.Row) error {
			return row.Scan(&st.Connector, &st.Channel, &st.Person, &st.Onboarding, &st.ReturnURL, &st.ExpiresAt)
		})
	})
	return st, err
}

const stateTake = `-- publishing.ConnectStateTake
delete from connect_state s where s.hash = $1 and s.expires_at > now() and (s.person_id is null
  or exists (select from member m where m.org_id = s.org_id and m.person_id = s.person_id and not m.disabled))
returning s.connector`

// TakeState deletes a connect state, so that it is used once. It returns pgx.ErrNoRows when there is none that has not
// expired, and when who began it is no member any more.
func (s *Store) TakeState(ctx context.Context, org tenancy.OrgID, hash []byte) error {
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateTake, hash).QueryRow(func(row pgx.Row) error { return row.Scan(new(string)) })
	})
}
