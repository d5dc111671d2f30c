package pg_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// settingsNow reads the settings that the policies compare rows with.
const settingsNow = `select concat_ws(' ', current_setting('app.org_id', true),
	nullif(current_setting('app.channels', true), ''), nullif(current_setting('app.customers', true), ''))`

func TestNarrow_SetsWhatThePoliciesRead(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		org, channel, customer := uuid.New(), uuid.NewString(), uuid.NewString()
		both := pg.Narrow(t.Context(), pg.Narrowing{Channels: []string{channel}, Customers: []string{customer}})
		limited := " {" + channel + "} {" + customer + "}"
		for name, tt := range map[string]struct {
			ctx  context.Context
			want string
		}{
			"not narrowed":      {ctx: t.Context(), want: ""},
			"an empty list":     {ctx: pg.Narrow(t.Context(), pg.Narrowing{}), want: ""},
			"both lists":        {ctx: both, want: limited},
			"one list":          {ctx: pg.Narrow(t.Context(), pg.Narrowing{Customers: []string{customer}}), want: " {} {" + customer + "}"},
			"text, not an id":   {ctx: pg.Narrow(t.Context(), pg.Narrowing{Channels: []string{"'; drop"}}), want: " {" + uuid.Nil.String() + "} {}"},
			"an empty list too": {ctx: pg.Narrow(both, pg.Narrowing{}), want: limited},
			"whole":             {ctx: pg.Whole(both), want: ""},
		} {
			for kind, got := range settingsIn(t, tt.ctx, d, org) {
				if want := org.String() + tt.want; got != want {
					t.Errorf("%s in %s: got %q, want %q", name, kind, got, want)
				}
			}
		}
		// Settings end with the transaction.
		for kind, got := range settingsIn(t, t.Context(), d, org) {
			if got != org.String() {
				t.Errorf("%s afterward: got %q, want only the organization", kind, got)
			}
		}
	})
}

// settingsIn returns the settings in each kind of transaction that enters an organization.
func settingsIn(t *testing.T, ctx context.Context, d *pg.DB, org uuid.UUID) map[string]string {
	t.Helper()
	out := map[string]string{}
	scan := func(kind string, row pgx.Row) error {
		var text string
		err := row.Scan(&text)
		out[kind] = text
		return err
	}
	queue := func(kind string) func(*pgx.Batch) {
		return func(b *pgx.Batch) {
			b.Queue(settingsNow).QueryRow(func(row pgx.Row) error { return scan(kind, row) })
		}
	}
	err := errors.Join(
		d.Read(ctx, org, queue("Read")),
		d.WriteOrg(ctx, org, queue("WriteOrg")),
		d.InOrg(ctx, org, func(tx pgx.Tx) error {
			if err := scan("InOrg", tx.QueryRow(ctx, settingsNow)); err != nil {
				return err
			}
			if err := d.AsGate(ctx, tx, org, func(pg.Querier) error { return nil }); err != nil {
				return err
			}
			return scan("AsGate", tx.QueryRow(ctx, settingsNow))
		}),
		d.InRole(ctx, pg.Gate, func(tx pgx.Tx) error {
			if err := d.EnterOrg(ctx, tx, org); err != nil {
				return err
			}
			return scan("EnterOrg", tx.QueryRow(ctx, settingsNow))
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAsWhole_LiftsTheNarrowingForOneFunction(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		org := uuid.New()
		ctx := pg.Narrow(t.Context(), pg.Narrowing{Channels: []string{uuid.NewString()}})
		refused := errors.New("refused")
		err := d.InOrg(ctx, org, func(tx pgx.Tx) error {
			var before, inside, nested, after string
			if err := tx.QueryRow(ctx, settingsNow).Scan(&before); err != nil {
				return err
			}
			err := pg.AsWhole(ctx, tx, func(ctx context.Context) error {
				err := pg.AsWhole(ctx, tx, func(ctx context.Context) error {
					return tx.QueryRow(ctx, settingsNow).Scan(&nested)
				})
				return errors.Join(err, tx.QueryRow(ctx, settingsNow).Scan(&inside), refused)
			})
			if !errors.Is(err, refused) {
				t.Errorf("got %v, want the error of the function", err)
			}
			if err := tx.QueryRow(ctx, settingsNow).Scan(&after); err != nil {
				return err
			}
			if inside != org.String() || nested != org.String() {
				t.Errorf("inside: got %q and %q, want only the organization", inside, nested)
			}
			if before != after || !strings.Contains(after, "{}") {
				t.Errorf("afterward: got %q, want %q", after, before)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAsWhole_ReturnsErrorOfStatement(t *testing.T) {
	forEachPooler(t, func(t *testing.T, d *pg.DB) {
		ctx := pg.Narrow(t.Context(), pg.Narrowing{Channels: []string{uuid.NewString()}})
		err := d.InOrg(ctx, uuid.New(), func(tx pgx.Tx) error {
			return pg.AsWhole(ctx, tx, func(ctx context.Context) error {
				_, err := tx.Exec(ctx, "select 1/0")
				return err
			})
		})
		if code(err) != "22012" {
			t.Errorf("got %v, want the division by zero", err)
		}
	})
}
