// Package store executes the statements for claims, sends, sweeps and pauses. Only the parent
// package imports it.
package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
)

// ClaimRules holds the settings shared by all claims of a process.
type ClaimRules struct {
	// Hold is how long a claim lasts unless it is extended.
	Hold time.Duration
	// MaxLate is the maximum lateness at which a due post can still be claimed.
	MaxLate time.Duration
	// Window is the number of channels that one claim visits per organization.
	Window int
	// Node is the process's name in timelines.
	Node string
}

//go:embed sql/claim.sql
var claim string

// Claim claims due posts, at most one per channel. It returns the claimed posts, and the time at
// which each organization's next post is due. If the lease is stale, it claims nothing. number
// identifies the statement within the process. After an error, pass number to GiveBack, because the
// statement may have claimed posts.
func Claim(
	ctx context.Context, d *db.DB, l dispatch.Lease, wants []dispatch.Want, limits dispatch.ClaimLimits,
	number int64,
	rules ClaimRules,
) (r dispatch.ClaimResult, err error) {
	orgs, permits, after := wantArrays(wants)
	names, most, spent := platformLimits(limits)
	full := append(spent, fullDestinations(limits)...)
	var rows []claimRow
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		rows = nil
		b.Queue(claim, l.Shards, l.Holder, orgs, permits, after, rules.Window, rules.MaxLate.Milliseconds(), full,
			number, rules.Hold.Milliseconds(), rules.Node, names, most, limits.Busy, int64(limits.Free)).
			Query(db.Collect(&rows, (*claimRow).columns))
	})
	r = dispatch.NewClaimResult()
	for i := range rows {
		rows[i].addTo(&r)
	}
	return r, err
}

// claimRow is a row returned by claim.sql. It holds either a claimed post or, if Post is zero, an
// organization's entries in the result's maps.
type claimRow struct {
	dispatch.Claimed
	connector, destination *string
	attempt                *int
	next                   *time.Time
	atLimit                []string
}

// columns must match the column order of claim.sql, because db.Collect scans by position.
func (r *claimRow) columns() []db.Column {
	return []db.Column{
		db.Col("org_id", &r.Org), db.Col("id", &r.Post), db.Col("channel_id", &r.Channel),
		db.Col("connector", &r.connector),
		db.Col("place", &r.destination), db.Col("claim_token", &r.Token), db.Col("attempt", &r.attempt),
		db.Col("due", &r.Due),
		db.Col("next", &r.next), db.Col("at_limit", &r.atLimit),
	}
}

func (r *claimRow) addTo(out *dispatch.ClaimResult) {
	if !r.Post.IsZero() {
		c := r.Claimed
		c.Connector, c.Destination, c.Attempt = *r.connector, *r.destination, *r.attempt
		out.Claimed = append(out.Claimed, c)
		return
	}
	out.Now = r.Due
	if r.next != nil {
		out.Next[r.Org] = *r.next
	}
	if !r.Channel.IsZero() {
		out.More[r.Org] = r.Channel
	}
	if len(r.atLimit) > 0 {
		out.AtLimit[r.Org] = r.atLimit
	}
}

func wantArrays(wants []dispatch.Want) (orgs [][16]byte, permits []int32, after [][16]byte) {
	orgs, permits, after = make([][16]byte, len(wants)), make([]int32, len(wants)), make([][16]byte, len(wants))
	for i, w := range wants {
		orgs[i], permits[i], after[i] = w.Org.UUID(), int32(w.Permits), w.After.UUID()
	}
	return orgs, permits, after
}

// platformLimits returns the names of the platforms and their limits. spent lists the platforms
// that have reached their limit; claim.sql claims no posts for them.
func platformLimits(l dispatch.ClaimLimits) (names []string, most []int32, spent []string) {
	names, most, spent = []string{}, []int32{}, []string{}
	for name, n := range l.Platforms {
		names, most = append(names, name), append(most, int32(n))
		if n <= 0 {
			spent = append(spent, name)
		}
	}
	return names, most, spent
}

// fullDestinations returns the destinations that hold at least as many permits as are free. These
// destinations receive no more permits.
func fullDestinations(l dispatch.ClaimLimits) (out []string) {
	for name, n := range l.Busy {
		if n >= l.Free {
			out = append(out, name)
		}
	}
	return out
}
