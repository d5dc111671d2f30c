package admission

import (
	"context"

	"crier/platform/fault"
	"crier/tenancy"
)

// MailTo lets send write to an address. Above the limit of the address and unless exempt allows it, MailTo does nothing
// and returns nil, which keeps secret what others have requested; above that of the client it is RateLimited.
func (g *Gate) MailTo(ctx context.Context, b addressBucket, exempt func(context.Context, string) bool, email string,
	send func(context.Context, string) error) error {
	if err := g.AdmitClient(ctx, g.Buckets.mail); err != nil {
		return err
	}
	var faults tenancy.Inputs
	email = faults.Email("email", email)
	if err := faults.Err("admission.mailTo"); err != nil {
		return err
	}
	if err := g.AdmitAddress(ctx, b, email); fault.Is(err, fault.RateLimited) && !exempt(ctx, email) {
		return nil
	}
	return send(ctx, email)
}
