package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

const profileSpan = 10 * time.Second

// profiled writes, when asked for, a CPU profile of the service from now on; its end adds which statements took Postgres how long since the counters began.
func (b *base) profiled(ctx context.Context, n *node) (end func() error) {
	if b.opts.profile == "" {
		return func() error { return nil }
	}
	written := n.profile(ctx, profileSpan, b.opts.profile)
	return func() error { return errors.Join(written(), b.explain(ctx, b.opts.profile+".sql")) }
}

func (b *base) explain(ctx context.Context, path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rows, err := b.super.Query(ctx, `select calls, rows, total_exec_time::bigint, total_plan_time::bigint, wal_bytes::bigint, coalesce(substring(query from '^-- ([A-Za-z.]+)'), left(query, 80)) from pg_stat_statements
		where dbid = (select oid from pg_database where datname = current_database()) order by total_exec_time desc limit 20`)
	if err != nil {
		return err
	}
	if err := told(f, rows); err != nil {
		return err
	}
	hot, err := b.super.Query(ctx, `select relname, n_tup_ins, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where n_tup_upd > 0`)
	if err != nil {
		return err
	}
	return updated(f, hot)
}

func updated(f *os.File, rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var table string
		var inserted, updated, hot int64
		if err := rows.Scan(&table, &inserted, &updated, &hot); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(f, "%s: %d inserted, %d updated, %d of these past the indexes\n", table, inserted, updated, hot); err != nil {
			return err
		}
	}
	return rows.Err()
}

func told(f *os.File, rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var calls, n, took, planned, wal int64
		var query string
		if err := rows.Scan(&calls, &n, &took, &planned, &wal, &query); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(f, "%8d calls %8d rows %8d ms executing %6d ms planning %10d bytes of WAL  %s\n", calls, n, took, planned, wal, query); err != nil {
			return err
		}
	}
	return rows.Err()
}
