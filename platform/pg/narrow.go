package pg

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Narrowing lists what a request may see of its organization: the given channels, the given
// customers' channels, and everything that belongs to these channels or customers, such as posts.
type Narrowing struct {
	// Channels and Customers are ids. An id that does not parse matches nothing.
	Channels, Customers []string
}

type narrowingKey struct{}

// narrowing holds the values of the settings app.channels and app.customers. The policies named
// narrow compare rows with these values. Both are uuid[] values in text form. An empty app.channels
// means that nothing is hidden, so a narrowing without channels uses {}.
type narrowing struct{ channels, customers string }

// Narrow returns a context whose calls to Read, WriteOrg, InOrg and EnterOrg see only what n lists.
// For these calls, other channels and their posts do not exist. Postgres determines a customer's
// channels when a statement runs, so moving a channel to another customer takes effect immediately.
//
// If n is empty, Narrow returns ctx unchanged, including any narrowing that ctx already has.
func Narrow(ctx context.Context, n Narrowing) context.Context {
	if len(n.Channels) == 0 && len(n.Customers) == 0 {
		return ctx
	}
	return context.WithValue(ctx, narrowingKey{}, narrowing{
		channels: uuidArray(n.Channels), customers: uuidArray(n.Customers),
	})
}

// Whole returns ctx without its narrowing. Use it for transactions that must see all of the
// organization's rows, for example to count them or to check that a value is unique. The rows must
// not be shown to the client. Inside a narrowed transaction, use AsWhole instead.
func Whole(ctx context.Context) context.Context {
	if !IsNarrowed(ctx) {
		return ctx
	}
	return context.WithValue(ctx, narrowingKey{}, nil)
}

// IsNarrowed reports whether ctx comes from Narrow.
func IsNarrowed(ctx context.Context) bool {
	_, narrowed := narrowingOf(ctx)
	return narrowed
}

func narrowingOf(ctx context.Context) (n narrowing, narrowed bool) {
	n, narrowed = ctx.Value(narrowingKey{}).(narrowing)
	return n, narrowed
}

// AsWhole runs fn with all of the organization's rows visible, inside a transaction that was begun
// with ctx. It passes fn the context that Whole returns. If ctx is not narrowed, AsWhole only calls
// fn. It returns the error from fn or from Postgres. After an error from Postgres, the transaction
// must end.
func AsWhole(ctx context.Context, tx pgx.Tx, fn func(ctx context.Context) error) error {
	n, narrowed := narrowingOf(ctx)
	if !narrowed {
		return fn(ctx)
	}
	if _, err := tx.Exec(ctx, narrowing{}.set()); err != nil {
		return err
	}
	err := fn(Whole(ctx))
	// If this fails, Postgres has aborted the transaction, so the caller cannot read anything more
	// in it.
	if _, failed := tx.Exec(ctx, n.set()); err == nil {
		err = failed
	}
	return err
}

// set returns the statements that apply the narrowing to the current transaction.
func (n narrowing) set() string {
	return "set local app.channels = '" + n.channels + "'; set local app.customers = '" + n.customers + "'"
}

// orgSettings returns the statements that apply an organization, and the narrowing of ctx, to the
// current transaction. UUIDs in text form and the results of uuidArray need no quoting.
func orgSettings(ctx context.Context, org uuid.UUID) string {
	sql := "set local app.org_id = '" + org.String() + "'"
	if n, narrowed := narrowingOf(ctx); narrowed {
		sql += "; " + n.set()
	}
	return sql
}

// queueOrg is like orgSettings but queues a single statement in a batch.
func queueOrg(ctx context.Context, b *pgx.Batch, org uuid.UUID) {
	n, narrowed := narrowingOf(ctx)
	if !narrowed {
		b.Queue("select set_config('app.org_id', $1, true)", org.String())
		return
	}
	b.Queue("select set_config('app.org_id', $1, true), set_config('app.channels', $2, true), "+
		"set_config('app.customers', $3, true)", org.String(), n.channels, n.customers)
}

// uuidArray returns ids as a uuid[] in text form. It replaces invalid ids with uuid.Nil.
func uuidArray(ids []string) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		parsed, err := uuid.Parse(id)
		if err != nil {
			parsed = uuid.Nil // no row has it
		}
		words[i] = parsed.String()
	}
	return "{" + strings.Join(words, ",") + "}"
}
