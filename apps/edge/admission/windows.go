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
	// Take counts a request for a key of the named bucket. The key's window begins with its first
	// request. Take returns how many requests are left and when the window ends. If no request was
	// left, left is -1 and the request is not counted. Take returns quickly. If it returns an
	// error, the request may still have been counted.
	Take(ctx context.Context, name, key string, limit int, window time.Duration) (left int, ends time.Time, err error)
}

// aloneFor is how long this process counts alone after an error from Windows, to keep requests from
// waiting for an unresponsive server.
const aloneFor = 5 * time.Second

// windows counts requests with Windows. If there is no Windows, or while it fails, the requests are
// counted in this process.
type windows struct {
	shared Windows // nil if this process counts alone
	clock  clock.Clock
	log    *slog.Logger
	// aloneUntil is when this process stops counting alone after an error, in nanoseconds since
	// 1970.
	aloneUntil atomic.Int64
}

// bucket limits each key's requests.
type bucket struct {
	name string
	// own holds the limit and the window's length. It counts requests while Windows cannot.
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

// clientBucket limits each client's requests. If the client's site is a larger network,
// clientBucket also limits the site's requests, to siteFactor times the client's limit.
type clientBucket struct{ client, site bucket }

const siteFactor = 4

// addressBucket limits the requests for each email address, both per site and across all sites. The
// limit across all sites is addressFactor times as high. It therefore takes several networks to use
// up the limit of somebody else's address.
type addressBucket struct{ site, all bucket }

const addressFactor = 4

// buckets holds the limits for sessions, for routes without a session, and for emails.
type buckets struct {
	// session counts all requests of a session.
	session bucket
	// SignUp counts registrations. SignUpAddress counts registrations with one email address.
	SignUp        clientBucket
	SignUpAddress addressBucket
	// mail counts a client's requests for emails. The next three buckets each count the requests
	// for one kind of email to one address, so that one kind cannot use up the limit of another.
	mail          clientBucket
	ResetAddress  addressBucket
	ResendAddress addressBucket
	InviteAddress addressBucket
	// sender counts emails to other people's addresses, such as invitations. It counts them per
	// organization and, across all organizations, per creator and per sender. It therefore also
	// limits how many emails each of these can send to one email domain.
	sender bucket
	// reviewAddress counts the review-request emails that one address receives from all
	// organizations. anyMail does not include them, because a reviewer may be asked to review many
	// posts at once.
	reviewAddress bucket
	// NewAddress counts requests to change to one email address, including requests with a wrong
	// proof. NewAddressOf counts one person's requests.
	NewAddress   addressBucket
	NewAddressOf bucket
	// anyMail counts the requests for one address across all values of addressBucket. These are the
	// emails that others can cause; notices about an account are not included.
	anyMail addressBucket
	// deviceReset counts the password-reset emails that a known browser may request beyond
	// ResetAddress and anyMail. A browser is known if the person has signed in with it before. The
	// separate limit keeps others from blocking the owner's password reset.
	deviceReset bucket
	// Factor counts requests that verify or enroll a second factor.
	Factor clientBucket
	// link counts the uses of one token, such as one emailed link. linkClient counts a client's
	// uses of all tokens. Its limit only bounds guessing, because all guests in one office may
	// share an address.
	link       bucket
	linkClient clientBucket
	// Provider counts sign-ins with identity providers.
	Provider   clientBucket
	Enterprise clientBucket
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
		stream:        client("stream", 30, time.Minute),
	}
}

// TakeSession counts a request by the session that has the token. It returns how many requests are
// left in the window, when the window ends, and whether the request is allowed.
func (g *Gate) TakeSession(ctx context.Context, token string) (left int, ends time.Time, ok bool) {
	return g.windows.take(ctx, g.Buckets.session, g.NameOf("session", token))
}

// AdmitClient counts a request by the client of ctx; see AdmitSource.
func (g *Gate) AdmitClient(ctx context.Context, b clientBucket) error {
	return g.AdmitSource(ctx, b, request.From(ctx).From)
}

// AdmitLink counts a use of a token by the client of ctx; see buckets. It returns RateLimited if no
// use is left.
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

// AdmitSource counts a request for a client and for its site. It returns RateLimited if either has
// reached its limit.
func (g *Gate) AdmitSource(ctx context.Context, b clientBucket, from tenancy.Source) error {
	if err := g.Admit(ctx, b.client, from.Client); err != nil || from.Site == from.Client {
		return err
	}
	return g.Admit(ctx, b.site, from.Site)
}

// AdmitAddress counts a request by the client of ctx for an email to an address, in b and in
// anyMail. It returns RateLimited if either limit has been reached. The address itself is not
// stored.
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

// ReviewerAdmission returns a function that counts an email from the principal of ctx to a
// reviewer. The function takes the address as the client wrote it, returns RateLimited if a limit
// has been reached, and does not use the database.
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

// Senders returns the names under which an email from the principal of ctx to somebody else's
// address is counted: the organization, the mailbox of the person responsible for it, and the
// sender's mailbox. Creating more organizations or accounts therefore does not allow more emails.
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

// AdmitSenders counts an email under the names of its senders. It returns RateLimited if one of
// them has reached its limit.
func (g *Gate) AdmitSenders(ctx context.Context, senders []string) error {
	for _, name := range senders {
		if err := g.Admit(ctx, g.Buckets.sender, name); err != nil {
			return LimitedMail(err, "You or your organizations have sent too many emails. Wait before you send "+
				"another.")
		}
	}
	return nil
}

// LimitedMail returns a copy of an error from Admit, with a message that says what is limited. It
// returns any other error unchanged.
func LimitedMail(err error, message string) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	told := *f
	told.Message = message
	return &told
}

// mailboxName returns the name under which emails to an address are counted. All addresses of one
// mailbox have the same name.
func (g *Gate) mailboxName(email string) string { return g.accountName(tenancy.Mailbox(email)) }

// AdmitDevice counts a known browser's request to reset the password of the account with the given
// email address. It returns false if the person has not signed in with the browser before, or if no
// request is left.
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

// Admit counts a request for a key of a bucket. It returns RateLimited if the key has reached its
// limit.
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
