package admission

import (
	"context"

	"crier/platform/fault"
	"crier/tenancy"
)

// MailTo calls send with the normalized email address and returns send's error. If the address has
// reached its limit and exempt returns false, MailTo does nothing and returns nil, so that nobody
// learns what others have requested. MailTo returns RateLimited if the client has reached its
// limit, and Invalid if the address is invalid.
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
