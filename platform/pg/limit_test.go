package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tests/dbtest"
)

// asOrg returns the methods that execute a statement as one organization. Each calls begun,
// possibly more than once, when all it needs is a connection.
func asOrg(d *pg.DB) map[string]func(ctx context.Context, org uuid.UUID, sql string, begun func()) error {
	queue := func(sql string, begun func()) func(b *pgx.Batch) {
		return func(b *pgx.Batch) { begun(); b.Queue(sql) }
	}
	return map[string]func(ctx context.Context, org uuid.UUID, sql string, begun func()) error{
		"Read": func(ctx context.Context, org uuid.UUID, sql string, begun func()) error {
			return d.Read(ctx, org, queue(sql, begun))
		},
		"WriteOrg": func(ctx context.Context, org uuid.UUID, sql string, begun func()) error {
			return d.WriteOrg(ctx, org, queue(sql, begun))
		},
		"InOrg": func(ctx context.Context, org uuid.UUID, sql string, begun func()) error {
			return d.InOrg(ctx, org, func(tx pgx.Tx) error {
				begun()
				_, err := tx.Exec(ctx, sql)
				return err
			})
		},
	}
}

// wantOrgBusy checks that a call failed because of other calls of its organization, and checks the
// fault that a client gets.
func wantOrgBusy(t *testing.T, way string, err error) {
	t.Helper()
	if !pg.IsOrgBusy(err) || pg.IsAway(err) {
		t.Errorf("%s of an organization that has half of the connections: got %v, want ErrOrgBusy", way, err)
		return
	}
	var f *fault.Error
	if !errors.As(pg.Fault("test.Op", err), &f) || f.Kind != fault.RateLimited || f.RetryAfter != time.Second || f.Message == "" {
		t.Errorf("%s: the fault is %+v, want RateLimited with a second to wait", way, f)
	}
}

// The call beyond the limit is refused; the others still wait.
func TestRead_RefusesCallBeyondQueue(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	org := uuid.New()
	dbtest.Occupy(t, d, org)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const waiting = 128
	ended := make(chan error, waiting+1)
	for range waiting + 1 {
		go func() { ended <- d.Read(ctx, org, func(b *pgx.Batch) { b.Queue("select 1") }) }()
	}
	select {
	case err := <-ended:
		wantOrgBusy(t, "Read", err)
	case <-time.After(20 * time.Second): // ends the test of an unbounded queue
		t.Fatalf("%d calls wait for connections of one organization, want at most %d", waiting+1, waiting)
	}
	cancel()
	for range waiting {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that waited until it was cancelled ended with %v, want context.Canceled", err)
		}
	}
}

func TestOrganization_GetsHalfOfConnections(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	half := int(d.Pool(pg.Tenant).Config().MaxConns) / 2
	if half < 2 {
		t.Fatalf("half of the connections are %d, want some", half)
	}
	ways := asOrg(d)
	for holds, hold := range ways {
		t.Run("slow calls of "+holds, func(t *testing.T) {
			slow, other := uuid.New(), uuid.New()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begun, ended := make(chan bool, half), make(chan error, half)
			for range half {
				go func() {
					ended <- hold(ctx, slow, "select pg_sleep(600)", func() { begun <- true })
				}()
			}
			for range half {
				select {
				case <-begun:
				case err := <-ended:
					t.Fatalf("a slow statement: got %v, want it to begin", err)
				}
			}
			for name, do := range ways {
				soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				wantOrgBusy(t, name, do(soon, slow, "select 1", func() {}))
				cancel()
				short := pg.WithOrgWait(t.Context(), time.Millisecond)
				wantOrgBusy(t, name+" with a short wait", do(short, slow, "select 1", func() {}))
				if err := do(t.Context(), other, "select 1", func() {}); err != nil {
					t.Errorf("%s of another organization: got %v, want no error", name, err)
				}
			}
			if len(ended) > 0 {
				t.Fatalf("a slow statement ended with %v, want it running", <-ended)
			}
			cancel()
			for range half {
				<-ended
			}
			for name, do := range ways {
				if err := do(t.Context(), slow, "select 1", func() {}); err != nil {
					t.Errorf("%s after the slow statements: got %v, want no error", name, err)
				}
			}
		})
	}
}
