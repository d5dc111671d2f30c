package admission

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/tenancy"
)

// Windows counts requests in fixed windows, shared across all processes.
type Windows interface {
	// Take counts a request for a key in the named bucket. The key's window begins with its first
	// request. Take returns how many requests are left in the window and when the window ends. If
	// the limit has already been reached, left is -1 and the request is not counted.
	//
	// Take returns quickly. If it returns an error, the request may have been counted anyway.
	Take(ctx context.Context, name, key string, limit int, window time.Duration) (left int, ends time.Time, err error)
}

// aloneFor is how long this process counts requests by itself after an error from Windows. During
// that time, requests do not wait for an unresponsive server.
const aloneFor = 5 * time.Second

// windows counts requests with Windows. Without Windows, or while Windows fails, it counts only
// this process's requests.
type windows struct {
	shared Windows // nil if this process counts alone
	clock  clock.Clock
	log    *slog.Logger
	// aloneUntil is the time until which this process counts by itself after an error, in
	// nanoseconds since 1970.
	aloneUntil atomic.Int64
}

// bucket limits each key's requests.
type bucket struct {
	name string
	// own holds the limit and the window's length. While Windows is missing or fails, own also
	// counts the requests.
	own *throttle
}

// take counts a request for a key. It returns how many requests are left in the window, when the
// window ends, and whether the request is allowed.
func (w *windows) take(ctx context.Context, b bucket, key string) (left int, ends time.Time, ok bool) {
	now := w.clock.Now()
	until := w.aloneUntil.Load()
	if w.shared == nil || now.UnixNano() < until {
		return b.own.take(key)
	}
	left, ends, err := w.shared.Take(ctx, b.name, key, b.own.limit, b.own.every)
	if err == nil {
		return max(0, left), ends, left >= 0
	}
	if w.aloneUntil.CompareAndSwap(until, now.Add(aloneFor).UnixNano()) {
		w.log.WarnContext(ctx, "requests cannot be counted across processes; this process counts its own",
			"bucket", b.name, "error", err)
	}
	return b.own.take(key)
}

// clientBucket limits each client's requests. If the client belongs to a larger site, clientBucket
// also limits the site's requests, to siteFactor times the client's limit.
type clientBucket struct{ client, site bucket }

const siteFactor = 4

// addressBucket limits the requests for each email address, both per site and across all sites. The
// limit across all sites is addressFactor times the limit per site, so that a single site cannot
// use up the limit for somebody else's address.
type addressBucket struct{ site, all bucket }

const addressFactor = 4

// buckets holds the limits for sessions, for routes without a session, and for emails.
type buckets struct {
	// session counts all requests of a session.
	session bucket
	// SignUp counts registrations. SignUpAddress counts registrations with one email address.
	SignUp        clientBucket
	SignUpAddress addressBucket
	// mail counts a client's requests for emails. Each of the next three buckets counts the
	// requests for one kind of email to one address, so that one kind cannot use up another's
	// limit.
	mail          clientBucket
	ResetAddress  addressBucket
	ResendAddress addressBucket
	InviteAddress addressBucket
	// sender counts emails to other people's addresses, such as invitations. Each email counts
	// toward its organization. Across all organizations, it also counts toward the sender's mailbox
	// and toward the mailbox of the person responsible for the organization. The limit therefore
	// also bounds how many emails a sender can send to one email domain.
	sender bucket
	// reviewAddress counts the review-request emails that one address receives from all
	// organizations. anyMail does not include them, because a reviewer may be asked to review many
	// posts at once.
	reviewAddress bucket
	// NewAddress counts requests to change an account's email address to a given address, including
	// requests with a wrong proof. NewAddressOf counts the same requests per person.
	NewAddress   addressBucket
	NewAddressOf bucket
	// anyMail counts all requests for emails to one address, across the buckets of type
	// addressBucket. These are the emails that other people can cause. Notices about an account are
	// not counted.
	anyMail addressBucket
	// deviceReset counts the password-reset emails that a known browser may request after
	// ResetAddress or anyMail has reached its limit. A browser is known if the person has signed in
	// with it before. Because of this separate limit, others cannot block the owner's password
	// reset.
	deviceReset bucket
	// Factor counts requests that verify or enroll a second factor.
	Factor clientBucket
	// link counts the uses of a single token, such as the token in an emailed link. linkClient
	// counts a client's uses of all tokens. linkClient's limit only has to prevent guessing. It is
	// high, because all guests in one office may share an address.
	link       bucket
	linkClient clientBucket
	// Provider counts sign-ins with identity providers.
	Provider   clientBucket
	Enterprise clientBucket
	// Authorize counts requests for the OAuth server's pages, because the service may have to fetch
	// a client's description. Token counts requests from clients to the OAuth server. Token's limit
	// is high, because all users of a hosted client share an IP address.
	Authorize clientBucket
	Token     clientBucket
	// stream counts the videos played through the service.
	stream clientBucket
}

func newBuckets(appLimit int, c clock.Clock) buckets {
	one := func(name string, limit int, every time.Duration) bucket {
		return bucket{name: name, own: newThrottle(limit, every, c)}
	}
	client := func(name string, limit int, every time.Duration) clientBucket {
		return clientBucket{client: one(name, limit, every), site: one(name+"-site", siteFactor*limit, every)}
	}
	address := func(name string, limit int, every time.Duration) addressBucket {
		return addressBucket{site: one(name+"-site", limit, every), all: one(name, addressFactor*limit, every)}
	}
	return buckets{
		session:       one("session", appLimit, sessionWindow),
		SignUp:        client("sign-up", 10, time.Hour),
		SignUpAddress: address("sign-up-address", 5, time.Hour),
		mail:          client("mail", 20, time.Hour),
		ResetAddress:  address("reset-address", 5, tenancy.ResetLife),
		ResendAddress: address("resend-address", 5, time.Hour),
		InviteAddress: address("invite-address", 5, time.Hour),
		sender:        one("sender", 100, time.Hour),
		reviewAddress: one("review-address", 30, time.Hour),
		NewAddress:    address("new-address", 10, time.Hour),
		NewAddressOf:  one("new-address-person", 20, time.Hour),
		anyMail:       address("any-mail", 6, time.Hour),
		deviceReset:   one("device-reset", 3, tenancy.ResetLife),
		Factor:        client("factor", 30, 5*time.Minute),
		link:          one("link", 60, 5*time.Minute),
		linkClient:    client("link-client", 600, 5*time.Minute),
		Provider:      client("provider", 60, 5*time.Minute),
		Enterprise:    client("enterprise", 60, time.Minute),
		Authorize:     client("oauth-page", 600, 5*time.Minute),
		Token:         client("oauth-token", 3000, 5*time.Minute),
		stream:        client("stream", 30, time.Minute),
	}
}

// TakeSession counts a request by the session with the given token. It returns how many requests
// are left in the window, when the window ends, and whether the request is allowed.
func (g *Gate) TakeSession(ctx context.Context, token string) (left int, ends time.Time, ok bool) {
	return g.windows.take(ctx, g.Buckets.session, g.NameOf("session", token))
}

// AdmitClient counts a request from ctx's client; see AdmitSource.
func (g *Gate) AdmitClient(ctx context.Context, b clientBucket) error {
	return g.AdmitSource(ctx, b, request.From(ctx).From)
}

// AdmitLink counts a use of a token by ctx's client, in linkClient and in link; see buckets. It
// returns RateLimited if either limit has been reached.
func (g *Gate) AdmitLink(ctx context.Context, token string) error {
	return g.admitToken(ctx, request.From(ctx).From, token)
}

// AdmitPage is AdmitLink for page handlers.
func (g *Gate) AdmitPage(c *fiber.Ctx, token string) error {
	return g.admitToken(c.UserContext(), request.From(c.Context()).From, token)
}

func (g *Gate) admitToken(ctx context.Context, from tenancy.Source, token string) error {
	if err := g.AdmitSource(ctx, g.Buckets.linkClient, from); err != nil || token == "" {
		return err
	}
	return g.Admit(ctx, g.Buckets.link, g.NameOf("link", token))
}

// AdmitStream counts a video that a client plays. It returns RateLimited if the client has reached
// its limit.
func (g *Gate) AdmitStream(ctx context.Context, from tenancy.Source) error {
	return g.AdmitSource(ctx, g.Buckets.stream, from)
}

// AdmitSource counts a request toward its client's limit and the limit of the client's site. It
// returns RateLimited if either limit has been reached.
func (g *Gate) AdmitSource(ctx context.Context, b clientBucket, from tenancy.Source) error {
	if err := g.Admit(ctx, b.client, from.Client); err != nil || from.Site == from.Client {
		return err
	}
	return g.Admit(ctx, b.site, from.Site)
}

// AdmitAddress counts, in b and in anyMail, a request from ctx's client for an email to an address.
// It returns RateLimited if either limit has been reached. The address itself is not stored.
func (g *Gate) AdmitAddress(ctx context.Context, b addressBucket, email string) error {
	name := g.mailboxName(email)
	for _, each := range []addressBucket{b, g.Buckets.anyMail} {
		if err := g.Admit(ctx, each.site, name+" "+request.From(ctx).From.Site); err != nil {
			return err
		}
		if err := g.Admit(ctx, each.all, name); err != nil {
			return err
		}
	}
	return nil
}

// ReviewerAdmission returns a function that counts an email from ctx's principal to a reviewer. The
// function accepts the reviewer's address exactly as the client sent it. It returns RateLimited if
// a limit has been reached. It does not use the database.
func (g *Gate) ReviewerAdmission(ctx context.Context) (func(ctx context.Context, email string) error, error) {
	senders, err := g.Senders(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, email string) error {
		if err := g.AdmitSenders(ctx, senders); err != nil {
			return err
		}
		return LimitedMail(g.Admit(ctx, g.Buckets.reviewAddress, g.mailboxName(email)),
			"This address has received too many emails. Wait before you send another, or send the review link "+
				"yourself.")
	}, nil
}

// Senders returns the names under which an email from ctx's principal to somebody else is counted.
// They stand for the organization, the mailbox of the person responsible for the organization, and
// the sender's mailbox. Creating more organizations or accounts therefore does not raise the limit.
func (g *Gate) Senders(ctx context.Context) ([]string, error) {
	p := request.Principal(ctx)
	mailboxes, err := g.accounts.Senders(ctx, p)
	if err != nil {
		return nil, err
	}
	names := []string{"organization " + p.Org.String()}
	for _, mailbox := range mailboxes {
		names = append(names, "mailbox "+mailbox)
	}
	return names, nil
}

// AdmitSenders counts an email under each of the names that Senders returned. It returns
// RateLimited if any of them has reached its limit.
func (g *Gate) AdmitSenders(ctx context.Context, senders []string) error {
	for _, name := range senders {
		if err := g.Admit(ctx, g.Buckets.sender, name); err != nil {
			return LimitedMail(err, "You or your organizations have sent too many emails. Wait before you send "+
				"another.")
		}
	}
	return nil
}

// LimitedMail returns a copy of an error from Admit, with a message that says what has been
// limited. It returns any other error unchanged.
func LimitedMail(err error, message string) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	told := *f
	told.Message = message
	return &told
}

// mailboxName returns the name under which emails to an address are counted. All addresses that
// belong to one mailbox share a name.
func (g *Gate) mailboxName(email string) string { return g.accountName(tenancy.Mailbox(email)) }

// AdmitDevice counts a known browser's request to reset the password of the account with the given
// email address. It returns false if the person has not signed in with the browser before, or if
// the browser has reached its limit.
func (g *Gate) AdmitDevice(ctx context.Context, email string) bool {
	from := request.From(ctx).From
	if from.Device == "" {
		return false
	}
	known, err := g.accounts.KnownDevice(ctx, email, from)
	if err != nil {
		g.log.WarnContext(ctx, "a browser cannot be recognized; its password reset counts like a stranger's",
			"client", from.Client, "error", err)
	}
	if !known {
		return false
	}
	return g.Admit(ctx, g.Buckets.deviceReset, g.NameOf("device", from.Device)+" "+g.accountName(email)) == nil
}

// Admit counts a request for key in b. It returns RateLimited if the key has reached its limit.
func (g *Gate) Admit(ctx context.Context, b bucket, key string) error {
	if _, ends, ok := g.windows.take(ctx, b, key); !ok {
		return g.TooManyRequests("admission.admit", ends)
	}
	return nil
}

// TooManyRequests returns the RateLimited error for a request that must wait until the given time.
func (g *Gate) TooManyRequests(op string, until time.Time) error {
	return &fault.Error{
		Kind: fault.RateLimited, Op: op, Message: "Too many requests; wait before the next one.",
		RetryAfter: until.Sub(g.clock.Now()),
	}
}
