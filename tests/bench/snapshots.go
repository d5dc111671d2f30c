package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"crier/platform/clock"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/publishing/access"
	"crier/publishing/analytics"
	"crier/publishing/connector"
	"crier/publishing/connector/sandboxoauth"
	publishingdb "crier/publishing/db"
)

const (
	snapshotOrgs     = 20
	snapshotChannels = 50 // per organization
	snapshotDays     = 30
	// blueskyLimit is the smallest documented client limit: calls to a Bluesky server in five
	// minutes.
	blueskyLimit = 3000
)

// gauges is a platform that has only metrics: the three series of the sandbox, for the requested
// days.
type gauges struct {
	server *http.Server
	url    string
	calls  atomic.Int64
}

func newGauges(ctx context.Context) (*gauges, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gauges{url: "http://" + ln.Addr().String()}
	g.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: g}
	go func() { _ = g.server.Serve(ln) }() // it returns when the server is closed
	return g, nil
}

func (g *gauges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.calls.Add(1)
	since, errSince := time.Parse(time.DateOnly, r.URL.Query().Get("since"))
	until, errUntil := time.Parse(time.DateOnly, r.URL.Query().Get("until"))
	if errSince != nil || errUntil != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var points []m
	for day := since; !day.After(until); day = day.Add(oneDay) {
		points = append(points, m{"day": day.Format(time.DateOnly), "value": day.Unix() / 86400})
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that has disconnected needs no response.
	_ = json.NewEncoder(w).Encode(m{"series": []m{
		{"name": "followers", "level": true, "points": points}, {"name": "impressions", "points": points},
		{"name": "likes", "points": points},
	}})
}

// snapshots measures a month of daily snapshots of 1,000 channels on one server. Each channel
// publishes once a day. The clock of the use cases is simulated in steps of an hour, and the rate
// of calls is not limited; the line says how long a day takes at the production rate.
//
// The floor makes the same number of calls with a bare client and stores the same number of days
// with one statement per call. Both run in this process, which is also the platform.
func snapshots(ctx context.Context, r *rig) error {
	return r.withDB(ctx, func(b *testDB) (err error) {
		g, err := newGauges(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = g.server.Close() }()
		all, err := b.createGauged(ctx, g.url)
		if err != nil {
			return err
		}
		began, err := b.cost(ctx)
		if err != nil {
			return err
		}
		month, err := b.takeMonth(ctx, g, all)
		if err != nil {
			return err
		}
		ours, err := b.cost(ctx)
		if err != nil {
			return err
		}
		ours = ours.since(began)
		if err := b.settle(ctx); err != nil {
			return err
		}
		began, err = b.cost(ctx)
		if err != nil {
			return err
		}
		if err := b.readBare(ctx, g, month.calls); err != nil {
			return err
		}
		floor, err := b.cost(ctx)
		if err != nil {
			return err
		}
		return b.emitSnapshots(month, ours, floor.since(began))
	})
}

// createGauged creates the organizations and their channels.
func (b *testDB) createGauged(ctx context.Context, address string) ([]tenant, error) {
	all, err := b.createTenants(ctx, snapshotOrgs, snapshotChannels)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		sealed, err := b.seal(t.org, m{
			"service": address, "accessToken": "access", "refreshToken": "refresh", "expiresAt": now().AddDate(1, 0, 0),
		})
		if err != nil {
			return nil, err
		}
		if _, err := b.super.Exec(
			ctx, `update channel set connector = 'sandbox-oauth', credential = $2 where org_id = $1`,
			t.org.UUID(), sealed,
		); err != nil {
			return nil, err
		}
	}
	_, err = b.super.Exec(ctx, `update channel_queue set connector = 'sandbox-oauth', destination = 'bench.test'`)
	return all, err
}

// snapshotMonth is the result of a month of snapshots.
type snapshotMonth struct {
	taken, days int
	calls       int64
	// peak is the largest number of calls in one hour, not counting the first day, when all
	// channels are new.
	peak int64
}

func (b *testDB) takeMonth(ctx context.Context, g *gauges, all []tenant) (out snapshotMonth, err error) {
	db, err := pg.Open(ctx, pg.Config{URL: b.server.URL(b.name), MaxConns: 8})
	if err != nil {
		return out, err
	}
	defer db.Close()
	at := now().Truncate(oneDay)
	analytics, stop, err := b.analytics(db, g.url, func() time.Time { return at })
	if err != nil {
		return out, err
	}
	defer stop()
	for hour := range snapshotDays * 24 {
		if hour%24 == 0 {
			due := at
			if _, err := b.insertPosts(ctx, snapshotOrgs*snapshotChannels, func(i int) booking {
				return booking{tenant: &all[i%len(all)], channel: i / len(all), due: due, done: true}
			}); err != nil {
				return out, err
			}
		}
		before := g.calls.Load()
		n, err := analytics.TakeSnapshots(ctx)
		if err != nil {
			return out, err
		}
		out.taken += n
		if made := g.calls.Load() - before; hour >= 24 {
			out.peak = max(out.peak, made)
		}
		at = at.Add(time.Hour)
	}
	out.calls = g.calls.Load()
	return out, b.super.QueryRow(ctx, `select count(*) from insight_day`).Scan(&out.days)
}

// analytics returns the use cases with the given clock and without a limit on calls.
func (b *testDB) analytics(db *pg.DB, address string, at func() time.Time) (*analytics.Analytics, func(), error) {
	client, err := outbound.To(address, outbound.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	line := bareLine{client}
	registry, err := connector.NewRegistry(sandboxoauth.New(sandboxoauth.Config{URL: address, HTTP: line}))
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	keeper := access.New(access.Deps{
		DB: publishingdb.New(db), Keyring: b.keyring, Connectors: registry, HTTP: line, Clock: clock.Func(at),
		Log: log, Timeout: time.Minute,
	})
	return analytics.New(analytics.Config{SnapshotRate: 1e6}, analytics.Deps{
		DB: publishingdb.New(db), Connectors: registry, Access: keeper, Clock: clock.Func(at), Log: log,
	}), client.Close, nil
}

// bareLine is a client that opens no websockets.
type bareLine struct{ *outbound.Client }

func (bareLine) Websocket(context.Context, string) (*websocket.Conn, error) {
	return nil, errors.ErrUnsupported
}

// readBare makes calls with a bare client and stores each response.
func (b *testDB) readBare(ctx context.Context, g *gauges, calls int64) error {
	pool, err := b.pool(ctx, 8)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := b.super.Exec(ctx, `create table floor (subject uuid, day date, figures jsonb, primary key (subject, day));
		grant all on floor to public`); err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	until := now().Truncate(oneDay)
	address := fmt.Sprintf(
		"%s/?since=%s&until=%s", g.url, until.Add(-2*oneDay).Format(time.DateOnly), until.Format(time.DateOnly),
	)
	_, err = drive(
		8, func(i int) bool { return i >= int(calls) },
		func(int) error { return readOne(ctx, client, pool, address, until) },
	)
	return err
}

func readOne(ctx context.Context, client *http.Client, pool *pgxpool.Pool, address string, day time.Time) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var answer struct{ Series []m }
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `insert into floor (subject, day, figures)
		select $1, $2::date - n, $3 from generate_series(0, 2) n`, uuid.New(), day, answer.Series)
	return err
}

func (b *testDB) emitSnapshots(month snapshotMonth, ours, floor cost) error {
	channels, per := snapshotOrgs*snapshotChannels, func(v float64) float64 { return v / float64(month.taken) }
	callsADay := float64(month.calls) / snapshotDays
	cpu := func(c cost) float64 { return ms(c.platform + c.postgres) }
	return b.emit(m{
		"bench": "snapshots", "channels": channels, "days": snapshotDays,
		"snapshots": month.taken, "daysStored": month.days,
		"calls": month.calls, "callsPerSnapshot": per(float64(month.calls)), "peakCallsAnHour": month.peak,
		"minutesOfADayAtRate":  callsADay / analytics.SnapshotRate / 60,
		"shareOfBlueskyLimit":  analytics.SnapshotRate * 300.0 / blueskyLimit,
		"statementsPerChannel": per(float64(ours.statements)), "cpuMsPerChannel": per(cpu(ours)),
		"floorCpuMsPerChannel": per(cpu(floor)), "cpuRatio": cpu(ours) / cpu(floor),
	})
}
