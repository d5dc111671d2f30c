package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

const profileSpan = 10 * time.Second

// profiled starts to write a CPU profile of the service, if one was requested. end also writes the
// time of each statement in Postgres since the counters were reset.
func (b *testDB) profiled(ctx context.Context, n *node) (end func() error) {
	if b.opts.profile == "" {
		return func() error { return nil }
	}
	written := n.profile(ctx, profileSpan, b.opts.profile)
	return func() error { return errors.Join(written(), b.explain(ctx, b.opts.profile+".sql")) }
}

func (b *testDB) explain(ctx context.Context, path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rows, err := b.super.Query(ctx, `select calls, rows, total_exec_time::bigint as exec_ms, total_plan_time::bigint as plan_ms, wal_bytes::bigint,
		coalesce(substring(query from '^-- ([A-Za-z.]+)'), left(query, 80))as query
		from pg_stat_statements
		where dbid = (select oid from pg_database where datname = current_database()) order by total_exec_time desc limit 20`)
	if err != nil {
		return err
	}
	if err := table(f, rows); err != nil {
		return err
	}
	hot, err := b.super.Query(ctx, `select relname, n_tup_ins, n_tup_upd, n_tup_hot_upd
		from pg_stat_user_tables where n_tup_upd > 0`)
	if err != nil {
		return err
	}
	return table(f, hot)
}

// table writes rows below the names of their columns.
func table(f *os.File, rows pgx.Rows) error {
	defer rows.Close()
	w := tabwriter.NewWriter(f, 0, 0, 2, ' ', 0)
	for _, column := range rows.FieldDescriptions() {
		fmt.Fprint(w, column.Name, "\t")
	}
	fmt.Fprintln(w)
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		for _, v := range values {
			fmt.Fprint(w, v, "\t")
		}
		fmt.Fprintln(w)
	}
	return errors.Join(rows.Err(), w.Flush())
}
