package edge

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/clock"
	"crier/platform/limit"
)

// transfers limits how slow uploads and downloads can be, and how many files are sent concurrently.
// It is safe for concurrent use.
type transfers struct {
	cfg       Config
	streams   *limit.PerKey[string] // videos being played, by client address
	originals orgLimit              // uploaded files being sent to their organizations
}

func newTransfers(cfg Config) *transfers {
	return &transfers{cfg: cfg, streams: limit.New[string](maxStreams), originals: newOrgLimit(maxOriginals)}
}

// limitUpload replaces REQUEST_TIMEOUT for the body with a transferLimit. An upload may then take
// up to UPLOAD_TIMEOUT as long as it is fast enough. limitUpload runs after authentication, so that
// only authenticated requests get that much time.
func (t *transfers) limitUpload(c *fiber.Ctx) error {
	if own, ok := c.Context().Conn().(*conn); ok {
		own.in = t.newLimit()
		defer func() { own.in = nil }()
	}
	return c.Next()
}

// BeginDownload replaces REQUEST_TIMEOUT for the response with a transferLimit. A response may then
// take up to UPLOAD_TIMEOUT as long as the client reads fast enough. end removes the transferLimit
// and allows REQUEST_TIMEOUT for the last bytes.
func (t *transfers) BeginDownload(c *fiber.Ctx) (end func() error) {
	own, ok := c.Context().Conn().(*conn)
	if !ok {
		return func() error { return nil }
	}
	own.out = t.newLimit()
	return func() error {
		own.out = nil
		return own.SetWriteDeadline(clock.System{}.Now().Add(t.cfg.Timeout))
	}
}

// EnterOriginal waits for one of the organization's slots for original files. It returns
// RateLimited if no slot is free within placeTimeout.
func (t *transfers) EnterOriginal(c *fiber.Ctx) (leave func(), err error) {
	return t.originals.take(c.UserContext(), c, 1)
}

// EnterStream waits for one of the client address's slots for playing videos. It returns
// RateLimited if no slot is free within placeTimeout.
func (t *transfers) EnterStream(c *fiber.Ctx) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(c.UserContext(), placeTimeout)
	defer cancel()
	leave, err = t.streams.Enter(ctx, request.From(c.Context()).From.Client)
	if err != nil {
		return nil, tooManyInProgress("Your address has", err)
	}
	return leave, nil
}

// newLimit returns the limit for an upload or download that starts now.
func (t *transfers) newLimit() *transferLimit {
	now := clock.System{}.Now()
	return &transferLimit{begun: now, end: now.Add(t.cfg.UploadTimeout), grace: t.cfg.Timeout, rate: t.cfg.UploadRate}
}

// transferLimit limits how slow the transfer of a request body or a response can be. From begun on,
// the transfer may take grace plus one second for every rate bytes that have been transferred. It
// must be complete before end.
type transferLimit struct {
	begun, end time.Time
	grace      time.Duration
	rate       int64 // bytes a second
	moved      int64 // bytes so far
}

// deadline returns the time by which more bytes must be transferred.
func (p *transferLimit) deadline() time.Time {
	earned := min(time.Duration(p.moved/p.rate), p.end.Sub(p.begun)/time.Second) * time.Second
	if at := p.begun.Add(p.grace + earned); at.Before(p.end) {
		return at
	}
	return p.end
}
