package appapi

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

// Windows counts requests in fixed windows for all processes together.
type Windows interface {
	// Take counts a request of a key of the bucket name in its window, which begins with the first one. It returns how
	// many are left and when the window ends. When none was left, left is -1 and the request is not counted. It returns
	// soon. After an error the request may have been counted.
	Take(ctx context.Context, name, key string, limit int, window time.Duration) (left int, ends time.Time, err error)
}

// aloneFor is how long this process counts alone after an error of Windows, so that requests do not wait for a server
// that does not answer.
const aloneFor = 5 * time.Second

// windows counts the requests of buckets by Windows, and in this process without it or while it fails.
type windows struct {
	shared Windows // nil without one
	clock  clock.Clock
	log    *slog.Logger
	// aloneUntil is in nanoseconds since 1970.
	aloneUntil atomic.Int64
}

// bucket limits the requests of each key.
type bucket struct {
	name string
	// own has the limit and the length of the window. It counts while Windows does not.
	own *throttle
}

// take counts a request of a key. It returns how many are left in the window, when the window ends, and whether the
// request is allowed.
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
		w.log.WarnContext(ctx, "requests cannot be counted together with other processes; this one counts its own",
			"bucket", b.name, "error", err)
	}
	return b.own.take(key)
}

// clientBucket limits the requests of each client, and those of each site to siteFactor times as many if it is a larger
// network than the client.
type clientBucket struct{ client, site bucket }

const siteFactor = 4

// addressBucket limits the requests for one mail address: those of each site, and those of all sites together to
// addressFactor times as many. So others can use up the mails of an address only from several networks.
type addressBucket struct{ site, all bucket }

const addressFactor = 4

// buckets are the limits of routes without a session, and of mails.
type buckets struct {
	// session counts all requests of a session.
	session bucket
	// signUp counts registrations, and signUpAddress those of one mail address.
	signUp        clientBucket
	signUpAddress addressBucket
	// mail counts requests for a mail. The next three count those for a mail of one kind to one address, because
	// requests of one kind must not use up the mails of another.
	mail          clientBucket
	resetAddress  addressBucket
	resendAddress addressBucket
	inviteAddress addressBucket
	// sender counts the mails to other people's addresses, such as invitations, by organization,
	// and by creator and person across all organizations. So it also limits what each of them sends
	// to one mail domain.
	sender bucket
	// reviewAddress counts the review-request mails that one address gets from all organizations.
	// They are not in anyMail: a reviewer may be asked about many posts at once.
	reviewAddress bucket
	// newAddress counts requests to change to one mail address, including requests with a wrong
	// proof. newAddressOf counts one person's requests.
	newAddress   addressBucket
	newAddressOf bucket
	// anyMail counts the requests of all these kinds for one address together: what others can cause. Notices about an
	// account are not in it.
	anyMail addressBucket
	// deviceReset counts the mails for a new password that a browser gets beyond resetAddress and anyMail if the person has
	// signed in in it before, so that others cannot keep the owner from a new password.
	deviceReset bucket
	// factor counts codes of second factors.
	factor clientBucket
	// link counts uses of one mailed link or other token. linkClient counts a client's uses of all
	// tokens: it only bounds guessing, because the guests of an office may share one address.
	link       bucket
	linkClient clientBucket
	// provider counts sign-ins at identity providers.
	provider   clientBucket
	enterprise clientBucket
	// stream counts videos that are played through the service.
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
		signUp:        client("sign-up", 10, time.Hour),
		signUpAddress: address("sign-up-address", 5, time.Hour),
		mail:          client("mail", 20, time.Hour),
		resetAddress:  address("reset-address", 5, tenancy.ResetLife),
		resendAddress: address("resend-address", 5, time.Hour),
		inviteAddress: address("invite-address", 5, time.Hour),
		sender:        one("sender", 100, time.Hour),
		reviewAddress: one("review-address", 30, time.Hour),
		newAddress:    address("new-address", 10, time.Hour),
		newAddressOf:  one("new-address-person", 20, time.Hour),
		anyMail:       address("any-mail", 6, time.Hour),
		deviceReset:   one("device-reset", 3, tenancy.ResetLife),
		factor:        client("factor", 30, 5*time.Minute),
		link:          one("link", 60, 5*time.Minute),
		linkClient:    client("link-client", 600, 5*time.Minute),
		provider:      client("provider", 60, 5*time.Minute),
		enterprise:    client("enterprise", 60, time.Minute),
		stream:        client("stream", 30, time.Minute),
	}
}

// admitClient counts the request of ctx, see admitSource.
func (a *API) admitClient(ctx context.Context, b clientBucket) error {
	return a.admitSource(ctx, b, request.From(ctx).From)
}

// admitLink counts a use of a token by the client of ctx, see buckets. It returns RateLimited when none is left.
func (a *API) admitLink(ctx context.Context, token string) error {
	return a.admitToken(ctx, request.From(ctx).From, token)
}

// admitPage is admitLink for the handler of a page.
func (a *API) admitPage(c *fiber.Ctx, token string) error {
	return a.admitToken(c.UserContext(), request.From(c.Context()).From, token)
}

func (a *API) admitToken(ctx context.Context, from tenancy.Source, token string) error {
	if err := a.admitSource(ctx, a.buckets.linkClient, from); err != nil || token == "" {
		return err
	}
	return a.admit(ctx, a.buckets.link, a.nameOf("link", token))
}

// AdmitStream counts a video that a client plays. It returns RateLimited when none is left.
func (a *API) AdmitStream(ctx context.Context, from tenancy.Source) error {
	return a.admitSource(ctx, a.buckets.stream, from)
}

// admitSource counts a request of a client, and of its site. It returns RateLimited when one of them has none left.
func (a *API) admitSource(ctx context.Context, b clientBucket, from tenancy.Source) error {
	if err := a.admit(ctx, b.client, from.Client); err != nil || from.Site == from.Client {
		return err
	}
	return a.admit(ctx, b.site, from.Site)
}

// admitAddress counts a request of ctx for a mail to an address, which is not stored, and all such requests together. It
// returns RateLimited when none is left.
func (a *API) admitAddress(ctx context.Context, b addressBucket, email string) error {
	name := a.mailboxName(email)
	for _, each := range []addressBucket{b, a.buckets.anyMail} {
		if err := a.admit(ctx, each.site, name+" "+request.From(ctx).From.Site); err != nil {
			return err
		}
		if err := a.admit(ctx, each.all, name); err != nil {
			return err
		}
	}
	return nil
}

// ReviewerAdmission returns a function that counts a request of ctx for a mail to a reviewer, with
// the address as the client wrote it. It returns RateLimited when the limit is reached, and does
// not use the database.
func (a *API) ReviewerAdmission(ctx context.Context) (func(ctx context.Context, email string) error, error) {
	senders, err := a.senders(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, email string) error {
		if err := a.admitSenders(ctx, senders); err != nil {
			return err
		}
		return limitedMail(a.admit(ctx, a.buckets.reviewAddress, a.mailboxName(email)),
			"This address has received too many mails; wait before the next one, or send the review link yourself.")
	}, nil
}

// senders returns the names under which a mail from the principal of ctx to somebody else's address
// counts: the organization, and the mailboxes of the person who answers for it and of the sender.
// Creating more organizations or accounts therefore does not allow more mails.
func (a *API) senders(ctx context.Context) ([]string, error) {
	p := request.Principal(ctx)
	mailboxes, err := a.deps.Accounts.Senders(ctx, p)
	if err != nil {
		return nil, err
	}
	names := []string{"organization " + p.Org.String()}
	for _, mailbox := range mailboxes {
		names = append(names, "mailbox "+mailbox)
	}
	return names, nil
}

// admitSenders counts a mail under the names of its senders. It returns RateLimited when one of
// them has reached its limit.
func (a *API) admitSenders(ctx context.Context, senders []string) error {
	for _, name := range senders {
		if err := a.admit(ctx, a.buckets.sender, name); err != nil {
			return limitedMail(err, "You, or your organizations, have sent too many mails; wait before the next one.")
		}
	}
	return nil
}

// limitedMail returns a refusal of admit with a message that says what is limited.
func limitedMail(err error, message string) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	told := *f
	told.Message = message
	return &told
}

// mailboxName returns the name under which mails to an address are counted, which is the same for all addresses of one
// mailbox.
func (a *API) mailboxName(email string) string { return a.accountName(tenancy.Mailbox(email)) }

// admitDevice counts a request of a browser for a new password for an address. It returns false when the person with the
// address has not signed in in the browser before, and when none is left.
func (a *API) admitDevice(ctx context.Context, email string) bool {
	from := request.From(ctx).From
	if from.Device == "" {
		return false
	}
	known, err := a.deps.Accounts.KnownDevice(ctx, email, from)
	if err != nil {
		a.deps.Log.WarnContext(ctx, "a browser cannot be recognized; its request for a new password counts like one of a stranger",
			"client", from.Client, "error", err)
	}
	if !known {
		return false
	}
	return a.admit(ctx, a.buckets.deviceReset, a.nameOf(cookieDevice, from.Device)+" "+a.accountName(email)) == nil
}

func (a *API) admit(ctx context.Context, b bucket, key string) error {
	if _, ends, ok := a.windows.take(ctx, b, key); !ok {
		return a.tooManyRequests("appapi.admit", ends)
	}
	return nil
}

func (a *API) tooManyRequests(op string, until time.Time) error {
	return &fault.Error{
		Kind: fault.RateLimited, Op: op, Message: "Too many requests; wait before the next one.",
		RetryAfter: until.Sub(a.deps.Clock.Now()),
	}
}
