package accounts

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
)

// mailBox keeps mails, or returns fail for each of them if it is set.
type mailBox struct {
	mu   sync.Mutex
	all  []mail.Message
	fail error
}

func (b *mailBox) Send(_ context.Context, m mail.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	b.all = append(b.all, m)
	return nil
}

func (b *mailBox) to(email string) (out []mail.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if m.To == email {
			out = append(out, m)
		}
	}
	return out
}

// subjects returns the subjects of the mails to an address, oldest first, joined by " |
// ".
func (b *mailBox) subjects(email string) string {
	var out []string
	for _, m := range b.to(email) {
		out = append(out, m.Subject)
	}
	return strings.Join(out, " | ")
}

func (b *mailBox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = nil
}

// stallingBox is a mailBox that holds mails to a domain back until it is released.
type stallingBox struct {
	*mailBox
	domain string
	// entered receives each recipient in the domain when its mail is being sent.
	entered chan string
	release chan struct{}
}

func (b *stallingBox) Send(ctx context.Context, m mail.Message) error {
	if strings.HasSuffix(m.To, "@"+b.domain) {
		b.entered <- m.To
		select {
		case <-b.release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.mailBox.Send(ctx, m)
}

// publishing records the calls it receives.
type publishing struct {
	mu      sync.Mutex
	calls   []string
	failing map[tenancy.OrgID]error
	// forgotten lists the addresses of purged people.
	forgotten []string
}

func (p *publishing) note(call string, org tenancy.OrgID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call+" "+org.String())
	return p.failing[org]
}

func (p *publishing) Stop(_ context.Context, org tenancy.OrgID, _ string) error {
	return p.note("stop", org)
}

func (p *publishing) Resume(_ context.Context, org tenancy.OrgID, _ string, catchUp bool) error {
	return p.note(fmt.Sprintf("resume(%v)", catchUp), org)
}

func (p *publishing) Stopped(context.Context, []tenancy.OrgID) ([]tenancy.OrgID, error) {
	return nil, nil
}

func (p *publishing) TakeMade(context.Context, pg.Querier, tenancy.Maker) (tenancy.CreatedBy, error) {
	return tenancy.CreatedBy{}, nil
}

func (p *publishing) Purge(_ context.Context, org tenancy.OrgID) (int, error) {
	return 1, p.note("purge", org)
}

func (p *publishing) ForgetReviewer(_ context.Context, email string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten = append(p.forgotten, email)
	return nil
}

// taken returns the calls since it was last called.
func (p *publishing) taken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := strings.Join(p.calls, ", ")
	p.calls = nil
	return out
}
