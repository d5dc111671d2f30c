package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
)

// tenant is one organization of a benchmark.
type tenant struct {
	org      tenancy.OrgID
	channels []uuid.UUID
	first    int // number of its first channel
	key      string
}

const grade = "A"

// createTenants inserts organizations, each with an API key and with channels of the benchmark's
// platform. A channel's token is its number, which counts over all calls.
func (b *testDB) createTenants(ctx context.Context, organizations, channels int) ([]tenant, error) {
	all := make([]tenant, organizations)
	var orgs, keys, rows, queues [][]any
	for i := range all {
		t := tenant{org: id.New[tenancy.OrgTag](), first: b.channels}
		b.channels += channels
		full, err := secret.Token(tenancy.KeyPrefix, tenancy.KeyLength)
		if err != nil {
			return nil, err
		}
		t.key = full
		orgs = append(orgs, []any{t.org.UUID(), fmt.Sprintf("Organization %d", i)})
		keys = append(keys, []any{t.org.UUID(), uuid.New(), "bench", full[:8], secret.HashToken(full)})
		for j := range channels {
			c := uuid.New()
			sealed, err := b.credential(t.org, b.platform.address, t.first+j)
			if err != nil {
				return nil, err
			}
			t.channels = append(t.channels, c)
			rows = append(rows, []any{t.org.UUID(), c, "sandbox", fmt.Sprintf("Channel %d", t.first+j), c.String(),
				json.RawMessage(`{"maxLength":500}`), grade, sealed})
			queues = append(queues, []any{c, t.org.UUID(), int16(tenancy.Shard(t.org)), "sandbox"})
		}
		all[i] = t
	}
	for _, x := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{table: "organization", columns: []string{"id", "name"}, rows: orgs},
		{table: "api_key", columns: []string{"org_id", "id", "name", "prefix", "hash"}, rows: keys},
		{
			table:   "channel",
			columns: []string{"org_id", "id", "connector", "name", "account_id", "account", "grade", "credential"},
			rows:    rows,
		},
		{table: "channel_queue", columns: []string{"channel_id", "org_id", "shard", "connector"}, rows: queues},
	} {
		if _, err := b.super.CopyFrom(ctx, pgx.Identifier{x.table}, x.columns, pgx.CopyFromRows(x.rows)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// credential returns the sealed credential of a channel on the platform at an address.
func (b *testDB) credential(org tenancy.OrgID, address string, channel int) ([]byte, error) {
	return b.seal(org, m{"service": address, "name": "bench", "password": "bench",
		"accessToken": strconv.Itoa(channel), "refreshToken": "refresh"})
}

func (b *testDB) seal(org tenancy.OrgID, credential m) ([]byte, error) {
	plain, err := json.Marshal(credential)
	if err != nil {
		return nil, err
	}
	return b.keyring.Seal(plain, org.String())
}

// booking is one post to insert.
type booking struct {
	tenant  *tenant
	channel int // index in tenant.channels
	number  int // number within the channel, from 1; part of the text
	due     time.Time
	done    bool // already published
}

var (
	postColumns = []string{"org_id", "id", "group_id", "channel_id", "shard", "state", "due", "publish_date", "seq",
		"release_id"}
	partColumns = []string{"org_id", "id", "post_id", "position", "content"}
)

// insertPosts inserts posts of one part each, in order, and returns their ids.
func (b *testDB) insertPosts(ctx context.Context, n int, nth func(i int) booking) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, n)
	var start int64
	if err := b.super.QueryRow(ctx, "select setval('post_seq', nextval('post_seq') + $1) - $1",
		n).Scan(&start); err != nil {
		return nil, err
	}
	posts := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		x := nth(i)
		ids[i] = uuid.Must(uuid.NewV7())
		state, release := "QUEUE", any(nil)
		if x.done {
			state, release = "PUBLISHED", "r"+ids[i].String()
		}
		return []any{x.tenant.org.UUID(), ids[i], ids[i], x.tenant.channels[x.channel],
			int16(tenancy.Shard(x.tenant.org)), state, x.due, x.due, start + int64(i), release}, nil
	})
	if _, err := b.super.CopyFrom(ctx, pgx.Identifier{"post"}, postColumns, posts); err != nil {
		return nil, err
	}
	parts := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		x := nth(i)
		return []any{x.tenant.org.UUID(), ids[i], ids[i], 0, content(x.tenant.first+x.channel, x.number, x.due)}, nil
	})
	_, err := b.super.CopyFrom(ctx, pgx.Identifier{"part"}, partColumns, parts)
	return ids, err
}

// content returns a text from which the platform reads the channel, the number and the due time.
func content(channel, number int, due time.Time) string {
	return fmt.Sprintf("%d %d %d", channel, number, due.UnixMicro())
}

// spread returns a function for insertPosts that cycles through all channels of all tenants.
func spread(all []tenant, due time.Time) func(i int) booking {
	width := len(all[0].channels)
	return func(i int) booking {
		c := i % (len(all) * width)
		return booking{tenant: &all[c/width], channel: c % width, number: i/(len(all)*width) + 1, due: due}
	}
}
