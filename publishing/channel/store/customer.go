package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// maxCustomers limits the length of a customer list, because the list is held in memory.
const maxCustomers = 10_000

const customerList = `-- publishing.CustomerList
select id, name from customer order by lower(name), id limit $1`

// Customers returns an organization's customers, ordered by name.
func Customers(ctx context.Context, d *db.DB, org tenancy.OrgID) (out []publishing.Customer, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(customerList, maxCustomers).Query(db.Into(&out, func(row pgx.CollectableRow) (c publishing.Customer, err error) {
			return c, row.Scan(&c.ID, &c.Name)
		}))
	})
	return out, err
}
