package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	wallOrganizations = 200
	wallRows          = 200_000 // at most; see -rows
	wallPage          = 100
	wallColumns       = "id, at, person_id, actor, via, key_id, behind, action, subject, address"
	setOrganization   = "select set_config('app.org_id', $1, true)"
)

// wall is a filled audit log, with connections that row-level security applies to and connections
// that bypass it.
type wall struct {
	*testDB
	orgs []uuid.UUID
	ids  [][]uuid.UUID // ids of the rows of each organization
	// tenants have the role crier_tenant, and supers bypass row-level security.
	tenants, supers *pgxpool.Pool
}

// wallQuery is a query for one organization. For crier_tenant, the policy selects the organization;
// other roles name it in the query.
type wallQuery struct {
	name string
	// tenant has the parameters args. super has the organization before them.
	tenant, super string
	args          func(i int) []any
	rows          int // rows in the result
	index         string
}

// walled measures queries with row-level security. Its floor is the same queries by a superuser,
// with conditions that name the organization. Both use the same batches, which set the organization
// first. The superuser's query without that setting is measured as well.
func walled(ctx context.Context, r *rig) error {
	const most = 8
	return r.withDB(ctx, func(b *testDB) (err error) {
		w := &wall{testDB: b}
		if err := w.fill(ctx, min(wallRows, r.opts.rows)/wallOrganizations); err != nil {
			return err
		}
		w.supers, err = b.pool(ctx, most)
		if err != nil {
			return err
		}
		defer w.supers.Close()
		w.tenants, err = b.tenantPool(ctx, most)
		if err != nil {
			return err
		}
		defer w.tenants.Close()
		if err := w.checkWall(ctx); err != nil {
			return err
		}
		for _, q := range w.queries() {
			for _, users := range []int{1, most} {
				if err := w.measure(ctx, q, users); err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
			}
		}
		return nil
	})
}

// tenantPool returns connections of the service's log-in in the role crier_tenant.
func (b *testDB) tenantPool(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(b.server.URL(b.name))
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MinConns = int32(connections), int32(connections)
	cfg.ConnConfig.RuntimeParams["role"] = "crier_tenant"
	return pgxpool.NewWithConfig(ctx, cfg)
}

// fill inserts the organizations and then their rows, in turn.
func (w *wall) fill(ctx context.Context, rows int) error {
	if rows < wallPage {
		return fmt.Errorf("-rows must be at least %d", wallPage*wallOrganizations)
	}
	all, err := w.createTenants(ctx, wallOrganizations, 0)
	if err != nil {
		return err
	}
	for _, t := range all {
		w.orgs = append(w.orgs, t.org.UUID())
	}
	w.ids = make([][]uuid.UUID, len(w.orgs))
	first := now().Add(-time.Duration(rows) * time.Hour)
	columns := append([]string{"org_id"}, strings.Split(wallColumns, ", ")...)
	source := pgx.CopyFromSlice(rows*len(w.orgs), func(i int) ([]any, error) {
		k, id := i%len(w.orgs), uuid.Must(uuid.NewV7())
		w.ids[k] = append(w.ids[k], id)
		at := first.Add(time.Duration(i) * time.Hour / time.Duration(len(w.orgs)))
		return []any{
			w.orgs[k], id, at, id, "person@bench.example", "session", nil, "", "key.created", "a key", "10.0.0.1",
		}, nil
	})
	if _, err := w.super.CopyFrom(ctx, pgx.Identifier{"audit"}, columns, source); err != nil {
		return err
	}
	return w.settle(ctx)
}

func (w *wall) queries() []wallQuery {
	id := func(i int) any { ids := w.ids[i%len(w.ids)]; return ids[i*7919%len(ids)] }
	return []wallQuery{
		{
			name: "one row", rows: 1, index: "audit_pkey", args: func(i int) []any { return []any{id(i)} },
			tenant: "select " + wallColumns + " from audit where id = $1",
			super:  "select " + wallColumns + " from audit where org_id = $1 and id = $2",
		},
		{
			name: "newest page", rows: wallPage, index: "audit_at", args: func(int) []any { return []any{wallPage} },
			tenant: "select " + wallColumns + " from audit order by at desc, id desc limit $1",
			super:  "select " + wallColumns + " from audit where org_id = $1 order by at desc, id desc limit $2",
		},
	}
}

// checkWall returns an error unless the tenants' connections see the rows of one organization and
// the superuser's connections see all rows.
func (w *wall) checkWall(ctx context.Context) error {
	const count = "select count(*), count(distinct org_id) from audit"
	for _, x := range []struct {
		pool               *pgxpool.Pool
		rows, organization int
	}{
		{pool: w.tenants, rows: len(w.ids[0]), organization: 1},
		{pool: w.supers, rows: len(w.ids[0]) * len(w.orgs), organization: len(w.orgs)},
	} {
		var rows, organizations int
		b := &pgx.Batch{}
		b.Queue(setOrganization, w.orgs[0].String())
		b.Queue(count).QueryRow(func(row pgx.Row) error { return row.Scan(&rows, &organizations) })
		if err := x.pool.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if rows != x.rows || organizations != x.organization {
			return fmt.Errorf(
				"got %d rows of %d organizations, want %d of %d", rows, organizations, x.rows, x.organization,
			)
		}
	}
	return nil
}

func (w *wall) measure(ctx context.Context, q wallQuery, users int) error {
	plans, err := w.plans(ctx, q)
	if err != nil {
		return err
	}
	used := func() (cost, error) { return cost{postgres: treeOf(w.server.PID())}, nil }
	all, err := alternate(users, time.Duration(w.opts.seconds)*time.Second/4, shortTurns*w.opts.rounds,
		side{name: "tenant", used: used, call: func(i int) error {
			return w.query(ctx, w.tenants, q, true, w.org(i), q.tenant, q.args(i))
		}},
		side{name: "superuser", used: used, call: func(i int) error {
			return w.query(ctx, w.supers, q, true, w.org(i), q.super, append([]any{w.org(i)}, q.args(i)...))
		}},
		side{name: "superuser without the setting", used: used, call: func(i int) error {
			return w.query(ctx, w.supers, q, false, w.org(i), q.super, append([]any{w.org(i)}, q.args(i)...))
		}})
	if err != nil {
		return err
	}
	ours, floor, alone := all[0], all[1], all[2]
	line := m{
		"bench": "wall", "what": q.name, "clients": users, "unit": "queries/s", "calls": len(ours.took),
		"meanMs": ours.meanMs(), "floorMeanMs": floor.meanMs(), "meanRatio": ours.meanMs() / floor.meanMs(),
		"postgresCpuMs": ours.cpuMs(), "floorPostgresCpuMs": floor.cpuMs(), "cpuRatio": ours.cpuMs() / floor.cpuMs(),
		"aloneMeanMs": alone.meanMs(), "aloneMeanRatio": ours.meanMs() / alone.meanMs(),
		"aloneCpuRatio": ours.cpuMs() / alone.cpuMs(), "index": plans,
		"organizations": len(w.orgs), "rows": len(w.ids[0]) * len(w.orgs),
	}
	ours.beside(floor, line)
	return w.emit(line)
}

func (w *wall) org(i int) uuid.UUID { return w.orgs[i%len(w.orgs)] }

// query runs a query in one round trip, preceded by the statement that sets the organization if set
// is true. It returns an error if the result does not have the expected number of rows.
func (w *wall) query(
	ctx context.Context, pool *pgxpool.Pool, q wallQuery, set bool, org uuid.UUID, sql string, args []any,
) error {
	got := 0
	b := &pgx.Batch{}
	if set {
		b.Queue(setOrganization, org.String())
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			got++
		}
		return rows.Err()
	})
	if err := pool.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if got != q.rows {
		return fmt.Errorf("got %d rows, want %d", got, q.rows)
	}
	return nil
}

var scans = regexp.MustCompile(`Seq Scan|Bitmap Index Scan on \w+|Index (?:Only )?Scan (?:Backward )?using \w+`)

// plans returns how both sides read the table. It returns an error if they differ or use an index
// other than the query's. A connection first uses a plan for the given parameters, and later a plan
// for any parameters, so both are checked.
func (w *wall) plans(ctx context.Context, q wallQuery) (string, error) {
	var first string
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		tenant, err := w.plan(ctx, w.tenants, mode, q.tenant, q.args(0))
		if err != nil {
			return "", err
		}
		super, err := w.plan(ctx, w.supers, mode, q.super, append([]any{w.org(0)}, q.args(0)...))
		if err != nil {
			return "", err
		}
		ours, floor := scans.FindAllString(tenant, -1), scans.FindAllString(super, -1)
		if len(ours) != 1 || !strings.HasSuffix(ours[0], " "+q.index) || !slices.Equal(ours, floor) {
			return "", fmt.Errorf("with %s the plans do not both use %s:\n%s\nand\n%s", mode, q.index, tenant, super)
		}
		first = ours[0]
	}
	return first, nil
}

// plan returns the plan of a query in a transaction of the first organization.
func (w *wall) plan(ctx context.Context, pool *pgxpool.Pool, mode, sql string, args []any) (plan string, err error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx))) }()
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = fmt.Sprintf("'%v'", arg)
	}
	for _, s := range []string{
		"set local app.org_id = '" + w.orgs[0].String() + "'", "set local plan_cache_mode = " + mode,
		"prepare explained as " + sql,
	} {
		if _, err := tx.Exec(ctx, s, pgx.QueryExecModeSimpleProtocol); err != nil {
			return "", err
		}
	}
	rows, err := tx.Query(ctx, "explain (costs off) execute explained("+strings.Join(texts, ", ")+")",
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, "deallocate explained", pgx.QueryExecModeSimpleProtocol)
	return strings.Join(lines, "\n"), err
}
