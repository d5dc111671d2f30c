package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/pg/local"
	"crier/tests/faultnet"
)

func TestIsAway_SeparatesDatabaseFromCaller(t *testing.T) {
	t.Parallel()
	sql := func(code string) error { return fmt.Errorf("x: %w", &pgconn.PgError{Code: code}) }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                    {err: nil, want: false},
		"refused":                    {err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, want: true},
		"reset":                      {err: fmt.Errorf("x: %w", syscall.ECONNRESET), want: true},
		"cut off":                    {err: fmt.Errorf("x: %w", io.ErrUnexpectedEOF), want: true},
		"closed under a statement":   {err: fmt.Errorf("x: %w", pgconn.ErrConnClosed), want: true},
		"no name":                    {err: &net.DNSError{Err: "no such host"}, want: true},
		"out of time":                {err: fmt.Errorf("x: %w", context.DeadlineExceeded), want: true},
		"cancelled by the caller":    {err: fmt.Errorf("x: %w", context.Canceled), want: false},
		"cancelled while being read": {err: errors.Join(io.ErrUnexpectedEOF, context.Canceled), want: false},
		"connection failure":         {err: sql("08006"), want: true},
		"shut down":                  {err: sql("57P01"), want: true},
		"crashed":                    {err: sql("57P02"), want: true},
		"starting":                   {err: sql("57P03"), want: true},
		"full":                       {err: sql("53300"), want: true},
		"idle for too long":          {err: sql("25P03"), want: true},
		"a statement timed out":      {err: sql("57014"), want: true},
		"cancelled at the server":    {err: errors.Join(sql("57014"), context.Canceled), want: false},
		"a full disk":                {err: sql("53100"), want: true},
		"a system error":             {err: sql("58030"), want: true},
		"a wrong password":           {err: sql("28P01"), want: false},
		"a unique violation":         {err: sql("23505"), want: false},
		"no row":                     {err: pgx.ErrNoRows, want: false},
		"anything else":              {err: errors.New("x"), want: false},
	} {
		if got := pg.IsAway(c.err); got != c.want {
			t.Errorf("%s: IsAway returned %v, want %v", name, got, c.want)
		}
	}
}

func TestIsSlow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":      {err: nil, want: false},
		"out of time":  {err: fmt.Errorf("x: %w", context.DeadlineExceeded), want: true},
		"starting":     {err: &pgconn.PgError{Code: "57P03"}, want: true},
		"refused":      {err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, want: false},
		"a wrong name": {err: &net.DNSError{Err: "no such host"}, want: false},
		"shut down":    {err: &pgconn.PgError{Code: "57P01"}, want: false},
	} {
		if got := pg.IsSlow(c.err); got != c.want {
			t.Errorf("%s: IsSlow returned %v, want %v", name, got, c.want)
		}
	}
}

func TestFault_ValueThatCannotBeStoredIsInvalid(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	for name, c := range map[string]struct {
		sql  string
		arg  any
		want fault.Kind
	}{
		"NUL in a text":           {sql: "select $1::text", arg: "a\x00b", want: fault.Invalid},
		"no UTF-8":                {sql: "select $1::text", arg: "\xff\xfe", want: fault.Invalid},
		"NUL in JSON":             {sql: "select $1::jsonb ->> 'a'", arg: `{"a":"\u0000"}`, want: fault.Invalid},
		"a number out of range":   {sql: "select $1::bigint::int", arg: int64(1) << 40, want: fault.Invalid},
		"a mistake of our own":    {sql: "select $1::text from no_such_table", arg: "a", want: fault.Internal},
		"a violated constraint":   {sql: "insert into note (org_id, id) values (null, $1)", arg: 1, want: fault.Internal},
		"a row that is not there": {sql: "select 1 where $1::text is null", arg: "a", want: fault.Internal},
		"no error":                {sql: "select $1::text", arg: "a", want: ""},
	} {
		err := d.WriteOrg(t.Context(), uuid.New(), func(b *pgx.Batch) {
			b.Queue(c.sql, c.arg).QueryRow(func(row pgx.Row) error { var v any; return row.Scan(&v) })
		})
		err = pg.Fault("test.Op", err)
		var f *fault.Error
		if fault.KindOf(err) != c.want || c.want == fault.Invalid && (!errors.As(err, &f) || f.Message == "") {
			t.Errorf("%s: got %v, want kind %q", name, err, c.want)
		}
	}
}

// Changes to the same rows wait for each other for a limited time; a lock timeout is not an
// internal error.
func TestFault_LockTimeoutIsUnavailable(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	org := uuid.New()
	if err := add(t.Context(), d, org, org, 1, 0); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(sql string) error{
		"WriteOrg": func(sql string) error {
			return d.WriteOrg(t.Context(), org, func(b *pgx.Batch) {
				b.Queue("set local lock_timeout = '1ms'")
				b.Queue(sql)
			})
		},
		"InOrg": func(sql string) error {
			return d.InOrg(t.Context(), org, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "set local lock_timeout = '1ms'"); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), sql)
				return err
			})
		},
	} {
		var got error
		if err := d.InOrg(t.Context(), org, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "select from note for update"); err != nil {
				return err
			}
			got = pg.Fault("test.Op", write("update note set due = 1"))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var f *fault.Error
		if !errors.As(got, &f) || f.Kind != fault.Unavailable || f.RetryAfter != time.Second || f.Message == "" || !pg.IsLocked(got) {
			t.Errorf("%s of a locked row: got %v, want unavailable with a second to wait", name, got)
		}
	}
}

// ownServer starts a Postgres server that one test may stop. It returns the server and the pools of
// its database.
func ownServer(t *testing.T) (*local.Server, *pg.DB) {
	t.Helper()
	s, err := local.Start(t.Context(), local.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	migrate(t, s.URL("crier"))
	return s, open(t, s.URL("crier"), "")
}

// roundTrips returns every method that makes a round trip.
func roundTrips(d *pg.DB) map[string]func(ctx context.Context) error {
	org := uuid.New()
	one := func(b *pgx.Batch) { b.Queue("select 1") }
	exec := func(ctx context.Context) func(pgx.Tx) error {
		return func(tx pgx.Tx) error { _, err := tx.Exec(ctx, "select 1"); return err }
	}
	return map[string]func(ctx context.Context) error{
		"Read":      func(ctx context.Context) error { return d.Read(ctx, org, one) },
		"WriteOrg":  func(ctx context.Context) error { return d.WriteOrg(ctx, org, one) },
		"WriteRole": func(ctx context.Context) error { return d.WriteRole(ctx, pg.Clock, one) },
		"InOrg":     func(ctx context.Context) error { return d.InOrg(ctx, org, exec(ctx)) },
		"InRole":    func(ctx context.Context) error { return d.InRole(ctx, pg.Clock, exec(ctx)) },
		"Direct": func(ctx context.Context) error {
			c, err := d.Direct(ctx, pg.Clock)
			if err != nil {
				return err
			}
			return c.Close(ctx)
		},
	}
}

// wantAway checks that err becomes a fault of kind Unavailable with a RetryAfter.
func wantAway(t *testing.T, when, way string, err error) {
	t.Helper()
	var f *fault.Error
	if !errors.As(pg.Fault("test.Op", err), &f) || f.Kind != fault.Unavailable || f.RetryAfter <= 0 || f.Message == "" {
		t.Errorf("%s, %s: got %v, want unavailable with a time to wait", when, way, err)
	}
}

func TestIsAway_StoppedServer(t *testing.T) {
	t.Parallel()
	s, d := ownServer(t)
	for name, way := range roundTrips(d) {
		if err := way(t.Context()); err != nil {
			t.Fatalf("%s before the fault: got the error %v, want none", name, err)
		}
	}
	// The server stops in the middle of this transaction.
	err := d.InOrg(t.Context(), uuid.New(), func(tx pgx.Tx) error {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		_, err := tx.Exec(t.Context(), "select 1")
		return err
	})
	wantAway(t, "stopped in the middle", "InOrg", err)
	for name, way := range roundTrips(d) {
		wantAway(t, "stopped", name, way(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := way(ctx); err == nil || pg.IsAway(err) {
			t.Errorf("cancelled, %s: got %v, want an error that is not away", name, err)
		}
	}
	d.Close()
	wantAway(t, "closed", "Read", roundTrips(d)["Read"](t.Context()))
	wantAway(t, "closed", "InRole", roundTrips(d)["InRole"](t.Context()))
}

func TestIsAway_HangingServer(t *testing.T) {
	t.Parallel()
	p, through := faultnet.Start(t, blank(t))
	d := open(t, through, "")
	for name, way := range roundTrips(d) {
		if err := way(t.Context()); err != nil {
			t.Fatalf("%s before the fault: got the error %v, want none", name, err)
		}
	}
	p.Set(faultnet.Swallow)
	defer p.Set(faultnet.Refuse) // Close waits until the connections end
	for name, way := range roundTrips(d) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		wantAway(t, "silent", name, way(ctx))
		cancel()
	}
	// Without a deadline a connection attempt still ends.
	_, err := d.Direct(t.Context(), pg.Clock)
	wantAway(t, "silent", "Direct without a deadline", err)
}

// TestFault_KeepsUnavailableOfOtherServices: an unreachable file store causes the same network
// errors as the database.
func TestFault_KeepsUnavailableOfOtherServices(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		kind fault.Kind
		want string
	}{
		{refused, fault.Unavailable, "The database cannot be reached right now; try again soon."},
		{fault.Wrap(fault.Unavailable, "blob.Open", "The files are away.", refused), fault.Unavailable, "The files are away."},
		{fmt.Errorf("open: %w", fault.New(fault.Unavailable, "blob.Open", "The files are away.")), fault.Unavailable, "The files are away."},
		{fault.New(fault.NotFound, "blob.Open", "The file does not exist."), fault.Internal, ""},
	} {
		var f *fault.Error
		if !errors.As(pg.Fault("test.Op", c.err), &f) || f.Kind != c.kind || f.Message != c.want {
			t.Errorf("%v became %v, want %s with %q", c.err, f, c.kind, c.want)
		}
	}
}
