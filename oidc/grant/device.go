package grant

import (
	"context"
	"crypto/rand"
	"math/big"
	"strings"
	"time"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
)

const (
	// consonants are the letters of user codes. There are no vowels, so that codes do not form
	// words.
	consonants = "BCDFGHJKLMNPQRSTVWXZ"
	// userCodeLength is the number of letters in a user code. It allows 20^8 codes.
	userCodeLength = 8
	// pollInterval is the initial interval between a device's polls. Each time the device polls too
	// early, its interval grows by slowDown, up to maxPause.
	pollInterval = 5 * time.Second
	slowDown     = 5 * time.Second
	maxPause     = time.Minute
	// maxVisitorStarts and maxStarts limit how many device log-ins this process begins per minute
	// for one visitor's network and in total. Anyone can begin a log-in, which is then stored for
	// oidc.DeviceLife.
	maxVisitorStarts = 30
	maxStarts        = 3000
	// maxGuesses is how many device codes a person may enter per minute.
	maxGuesses = 10
)

// StartDevice begins a log-in on a device. It returns an oidc.Error with InvalidClient if there is
// no such client, or if the client has a secret, which a device cannot keep. The error has
// InvalidScope if the client may not request the scopes. StartDevice returns RateLimited if too
// many log-ins have begun from the visitor's network or in total.
func (s *Grants) StartDevice(
	ctx context.Context, clientID string, scopes oidc.Scopes, from tenancy.Source,
) (out oidc.Device, err error) {
	const op = "oidc.StartDevice"
	c, err := s.clients.Find(ctx, clientID, from)
	if err != nil {
		return out, err
	}
	if !c.Public() {
		return out, oidc.Fail(oidc.InvalidClient, "A client with a secret cannot log in on a device.")
	}
	allowed := scopes.Within(c.Scopes)
	if !allowed.Reads() {
		return out, oidc.Fail(oidc.InvalidScope, "The client may not ask for these scopes.")
	}
	v := s.starts.Take("for "+from.Site, s.clock.Now(), maxVisitorStarts)
	if v.Allowed {
		v = s.starts.Take("", s.clock.Now(), maxStarts)
	}
	if !v.Allowed {
		return out, &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: "Too many log-ins have begun; try again soon.",
			RetryAfter: v.RetryAfter,
		}
	}
	const tries = 3 // a collision with another log-in's code is practically impossible
	for range tries {
		out, err = s.startDevice(ctx, op, c, allowed)
		if !pg.IsUnique(err, "device_code_user_hash_key") {
			return out, err
		}
	}
	return out, err
}

func (s *Grants) startDevice(ctx context.Context, op string, c oidc.Client, scopes oidc.Scopes) (oidc.Device, error) {
	plain, hash, err := newToken(op, oidc.DevicePrefix)
	if err != nil {
		return oidc.Device{}, err
	}
	typed, err := newUserCode()
	if err != nil {
		return oidc.Device{}, fault.Wrap(fault.Internal, op, "", err)
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		return grantstore.InsertDevice(ctx, tx, grantstore.Device{
			Hash: hash, Client: c.ID, Scopes: scopes.Names(), ExpiresAt: s.clock.Now().Add(oidc.DeviceLife),
			Pause: int(pollInterval.Seconds()),
		}, secret.HashToken(typed))
	})
	const half = userCodeLength / 2
	return oidc.Device{
		Code: plain, UserCode: typed[:half] + "-" + typed[half:], Expires: oidc.DeviceLife, Interval: pollInterval,
	}, err
}

func newUserCode() (string, error) {
	var b strings.Builder
	for range userCodeLength {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(consonants))))
		if err != nil {
			return "", err
		}
		b.WriteByte(consonants[n.Int64()])
	}
	return b.String(), nil
}

// typedCode normalizes a code that a person typed. It returns only the consonants, in upper case.
func typedCode(userCode string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(consonants, r) {
			return r
		}
		return -1
	}, strings.ToUpper(userCode))
}

// DeviceRequest returns the authorization request of the device that shows the given code. It
// returns NotFound if the code is unknown, expired or already answered. It returns RateLimited if
// the person has entered too many codes.
func (s *Grants) DeviceRequest(ctx context.Context, p tenancy.Principal, userCode string) (
	out oidc.AuthorizationRequest, err error) {
	const op = "oidc.DeviceRequest"
	if err := s.countGuess(op, p); err != nil {
		return out, err
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		_, out, err = s.deviceOf(ctx, tx, userCode)
		return err
	})
	return out, noDevice(op, err)
}

// deviceOf locks the log-in for a typed code. It returns the log-in and its authorization request.
func (s *Grants) deviceOf(ctx context.Context, tx *db.GateTx, userCode string) (
	d grantstore.Device, r oidc.AuthorizationRequest, err error) {
	d, err = grantstore.LockDeviceOf(ctx, tx, secret.HashToken(typedCode(userCode)), s.clock.Now())
	if err != nil {
		return d, r, err
	}
	c, err := s.clients.ByID(ctx, tx, d.Client)
	return d, oidc.AuthorizationRequest{
		Client: c, Scopes: oidc.ScopesOf(d.Scopes), Resource: oidc.Resource(s.cfg.BaseURL),
	}, err
}

// countGuess counts a code that a person enters, and returns RateLimited if there have been too
// many. This limit makes guessing impractical, because few of the 20^8 codes exist at a time.
func (s *Grants) countGuess(op string, p tenancy.Principal) error {
	if err := bySession(op, p); err != nil {
		return err
	}
	v := s.guesses.Take(p.Person, s.clock.Now(), maxGuesses)
	if v.Allowed {
		return nil
	}
	return &fault.Error{
		Kind: fault.RateLimited, Op: op, Message: "You have typed too many codes; wait a minute.",
		RetryAfter: v.RetryAfter,
	}
}

// AnswerDevice stores the person's answer to a log-in, which can be answered only once. A nil
// consent denies access. AnswerDevice uses only the consent's scopes and limits. It returns the
// same errors as DeviceRequest. If c is not nil, it also returns Invalid and Forbidden in the same
// cases as Approve.
func (s *Grants) AnswerDevice(ctx context.Context, p tenancy.Principal, userCode string, c *oidc.Consent) error {
	const op = "oidc.AnswerDevice"
	if err := s.countGuess(op, p); err != nil {
		return err
	}
	if c == nil {
		return s.denyDevice(ctx, op, p, userCode)
	}
	consent := *c
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) (err error) {
		_, consent.Request, err = s.deviceOf(ctx, tx, userCode)
		return err
	})
	if err != nil {
		return noDevice(op, err)
	}
	if err := s.checkConsent(ctx, op, p, &consent); err != nil {
		return err
	}
	err = s.db.InOrgAs(ctx, op, p, func(tx *db.OrgTx) error {
		tx, grant, err := s.saveGrant(ctx, tx, p, consent)
		if err != nil {
			return err
		}
		gate, err := tx.Leave(ctx)
		if err != nil {
			return err
		}
		d, _, err := s.deviceOf(ctx, gate, userCode)
		if err != nil {
			return err
		}
		d.Decision, d.Org, d.Grant, d.Scopes = grantstore.Approved, p.Org, grant, consent.Scopes.Names()
		return grantstore.AnswerDevice(ctx, gate, d)
	})
	return noDevice(op, err)
}

func (s *Grants) denyDevice(ctx context.Context, op string, p tenancy.Principal, userCode string) error {
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if err := s.db.ConfirmSession(ctx, tx, p); err != nil {
			return err
		}
		d, _, err := s.deviceOf(ctx, tx, userCode)
		if err != nil {
			return err
		}
		return grantstore.AnswerDevice(ctx, tx, grantstore.Device{Hash: d.Hash, Decision: grantstore.Denied})
	})
	return noDevice(op, err)
}

func noDevice(op string, err error) error {
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "This code is unknown or has expired. Start again on the device.")
	}
	return result(err)
}

// PollDevice returns the tokens once the person has approved the log-in, and then deletes the
// log-in. Until the person answers, it returns an oidc.Error with AuthorizationPending, or with
// SlowDown if the device polls too early. If the person denies access, the error has AccessDenied.
// If the code is unknown or expired, it has ExpiredToken.
func (s *Grants) PollDevice(ctx context.Context, deviceCode string) (out oidc.Tokens, err error) {
	const op = "oidc.PollDevice"
	hash := secret.HashToken(deviceCode)
	var refused *oidc.Error
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, refused = oidc.Tokens{}, nil // fn may run again
		d, err := grantstore.LockDevice(ctx, tx, hash)
		expired := oidc.Fail(oidc.ExpiredToken, "The device code is unknown or has expired. Start again.")
		switch {
		case pg.IsNoRows(err):
			refused = expired
			return nil
		case err != nil:
			return err
		case !s.clock.Now().Before(d.ExpiresAt):
			refused = expired
			return nil
		case d.Decision == grantstore.Denied:
			refused = oidc.Fail(oidc.AccessDenied, "The person has denied the request.")
			return nil
		case d.Decision != grantstore.Approved:
			refused, err = s.pending(ctx, tx, d)
			return err
		}
		out, err = s.finishDevice(ctx, tx, op, d)
		return err
	})
	if refused != nil && err == nil {
		return oidc.Tokens{}, refused
	}
	return out, result(err)
}

// pending records a poll that arrives before the person has answered. It returns the error for the
// device, and increases the device's pause if the poll came too early.
func (s *Grants) pending(ctx context.Context, tx *db.GateTx, d grantstore.Device) (*oidc.Error, error) {
	now, pause := s.clock.Now(), time.Duration(d.Pause)*time.Second
	refused := oidc.Fail(oidc.AuthorizationPending, "The person has not answered yet.")
	if d.PolledAt != nil && now.Before(d.PolledAt.Add(pause)) {
		pause = min(pause+slowDown, maxPause)
		refused = oidc.Fail(oidc.SlowDown, "Wait longer between polls.")
	}
	return refused, grantstore.SetPolled(ctx, tx, d.Hash, now, int(pause.Seconds()))
}

// finishDevice issues an approved log-in's tokens and deletes the log-in.
func (s *Grants) finishDevice(ctx context.Context, gate *db.GateTx, op string, d grantstore.Device) (
	oidc.Tokens, error) {
	if err := grantstore.DeleteDevice(ctx, gate, d.Hash); err != nil {
		return oidc.Tokens{}, err
	}
	c, err := s.clients.ByID(ctx, gate, d.Client)
	if err != nil {
		return oidc.Tokens{}, err
	}
	tx, err := gate.Enter(ctx, d.Org)
	if err != nil {
		return oidc.Tokens{}, err
	}
	if err := confirmMember(ctx, tx, d.Person); err != nil {
		return oidc.Tokens{}, err
	}
	g, err := grantstore.LockGrant(ctx, tx, d.Grant)
	if err != nil {
		return oidc.Tokens{}, err
	}
	_, out, err := s.begin(ctx, tx, op, issuing{
		grant: d.Grant, scopes: oidc.ScopesOf(d.Scopes), resource: oidc.Resource(s.cfg.BaseURL), longLived: c.LongLived,
		ends: g.EndsAt,
	})
	return out, err
}
