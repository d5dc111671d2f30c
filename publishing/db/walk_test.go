package db_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing/db"
	"crier/tenancy"
	"crier/tests/syncbuffer"
)

// orgs returns n organizations in the order of their ids.
func orgs(n int) []tenancy.OrgID {
	out := make([]tenancy.OrgID, n)
	for i := range out {
		out[i] = id.New[tenancy.OrgTag]()
	}
	slices.SortFunc(out, func(a, b tenancy.OrgID) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// finding returns a search for organizations that come after the last one.
func finding(all []tenancy.OrgID) func(context.Context, tenancy.OrgID, int) ([]tenancy.OrgID, error) {
	return func(_ context.Context, after tenancy.OrgID, limit int) ([]tenancy.OrgID, error) {
		begin := slices.Index(all, after) + 1
		return all[begin:min(len(all), begin+limit)], nil
	}
}

func everyShard() []int16 {
	out := make([]int16, tenancy.Shards)
	for i := range out {
		out[i] = int16(i)
	}
	return out
}

func TestWalk_VisitsPagesInTurn(t *testing.T) {
	t.Parallel()
	all := orgs(5)
	walk := db.NewWalk(db.WalkRules{Size: 2, Shards: everyShard, Log: slog.New(slog.DiscardHandler), Skipped: "later"})
	for i, want := range []struct {
		visited []tenancy.OrgID
		more    bool
	}{{all[:2], true}, {all[2:4], true}, {all[4:], false}, {all[:2], true}} {
		var visited []tenancy.OrgID
		more, err := walk.Page(t.Context(), finding(all), func(_ context.Context, org tenancy.OrgID) (bool, error) {
			visited = append(visited, org)
			return false, nil
		})
		if err != nil || more != want.more || !slices.Equal(visited, want.visited) {
			t.Errorf("page %d: visited %v, more %t, %v; want %v, more %t", i, visited, more, err, want.visited, want.more)
		}
	}
}

func TestWalk_ReportsThatAVisitHasMore(t *testing.T) {
	t.Parallel()
	walk := db.NewWalk(db.WalkRules{Size: 9, Shards: everyShard, Log: slog.New(slog.DiscardHandler), Skipped: "later"})
	more, err := walk.Page(t.Context(), finding(orgs(1)), func(context.Context, tenancy.OrgID) (bool, error) { return true, nil })
	if err != nil || !more {
		t.Errorf("got more %t, %v; want more", more, err)
	}
}

func TestWalk_VisitsOnlyOwnShards(t *testing.T) {
	t.Parallel()
	all := orgs(4)
	own := int16(tenancy.Shard(all[1]))
	walk := db.NewWalk(db.WalkRules{
		Size: 4, Shards: func() []int16 { return []int16{own} }, Log: slog.New(slog.DiscardHandler), Skipped: "later",
	})
	// A full page, whose last organization belongs to another process, and then the rest.
	for range 2 {
		_, err := walk.Page(t.Context(), finding(all), func(_ context.Context, org tenancy.OrgID) (bool, error) {
			if int16(tenancy.Shard(org)) != own {
				t.Errorf("visited %s of another shard", org)
			}
			return false, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestWalk_SkipsOrganizationsWithOwnErrors(t *testing.T) {
	t.Parallel()
	all := orgs(3)
	away := errors.New("the database is away")
	for _, tt := range []struct {
		name     string
		err      error
		visits   int
		want     error
		logged   bool
		nextFrom int
	}{
		{name: "a row that Postgres refuses", err: &pgconn.PgError{Code: "23514"}, visits: 3, logged: true, nextFrom: 0},
		{name: "all connections in use", err: pg.ErrOrgBusy, visits: 3, logged: true, nextFrom: 0},
		{name: "no database", err: away, visits: 2, want: away, nextFrom: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := &syncbuffer.Buffer{}
			walk := db.NewWalk(db.WalkRules{
				Size: 9, Shards: everyShard, Log: slog.New(slog.NewTextHandler(log, nil)), Skipped: "visited later",
			})
			visits := 0
			_, err := walk.Page(t.Context(), finding(all), func(_ context.Context, org tenancy.OrgID) (bool, error) {
				if visits++; org == all[1] {
					return false, tt.err
				}
				return false, nil
			})
			if !errors.Is(err, tt.want) || visits != tt.visits {
				t.Errorf("got %d visits, %v; want %d, %v", visits, err, tt.visits, tt.want)
			}
			if logged := strings.Contains(log.String(), "visited later"); logged != tt.logged {
				t.Errorf("got the log %q, want the organization in it to be %t", log.String(), tt.logged)
			}
			var next []tenancy.OrgID
			_, err = walk.Page(t.Context(), finding(all), func(_ context.Context, org tenancy.OrgID) (bool, error) {
				next = append(next, org)
				return false, nil
			})
			if err != nil || !slices.Equal(next, all[tt.nextFrom:]) {
				t.Errorf("the next page has %v, %v; want %v", next, err, all[tt.nextFrom:])
			}
		})
	}
}

func TestWalk_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	walk := db.NewWalk(db.WalkRules{Size: 9, Shards: everyShard, Log: slog.New(slog.DiscardHandler), Skipped: "later"})
	visits := 0
	_, err := walk.Page(ctx, finding(orgs(3)), func(context.Context, tenancy.OrgID) (bool, error) {
		visits++
		cancel()
		return false, nil
	})
	if !errors.Is(err, context.Canceled) || visits != 1 {
		t.Errorf("got %d visits, %v; want one and the error of the context", visits, err)
	}
}
