package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// asOrg are the ways to carry out a statement as one organization. Each calls begun when nothing but a connection is
// missing, possibly more than once.
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

func TestOrganization_HasAtMostHalfOfTheConnections(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	half := int(d.Pool(pg.Tenant).Config().MaxConns) / 2
	if half < 2 {
		t.Fatalf("half of the connections are %d, want some", half)
	}
	ways := asOrg(d)
	for holds, hold := range ways {
		t.Run("of slow calls of "+holds, func(t *testing.T) {
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
					t.Fatalf("a slow statement does not begin: %v", err)
				}
			}
			for name, do := range ways {
				soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				if err := do(soon, slow, "select 1", func() {}); !pg.IsAway(err) {
					t.Errorf("%s gets one more connection than half, or fails otherwise: %v", name, err)
				}
				cancel()
				if err := do(t.Context(), other, "select 1", func() {}); err != nil {
					t.Errorf("%s of another organization: %v", name, err)
				}
			}
			if len(ended) > 0 {
				t.Fatalf("a slow statement has ended: %v", <-ended)
			}
			cancel()
			for range half {
				<-ended
			}
			for name, do := range ways {
				if err := do(t.Context(), slow, "select 1", func() {}); err != nil {
					t.Errorf("%s after the slow statements: %v", name, err)
				}
			}
		})
	}
}
