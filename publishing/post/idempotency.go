package post

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// writeOnce writes the posts and returns the time at which the first queued post is due, or nil if
// no post is queued. If another process is writing under the same key, writeOnce waits for at most
// keyWait and then returns that process's result.
//
// If the write fails for any other reason, the same request may already have succeeded in another
// process. In that case, writeOnce returns the result from that process.
func (s *Posts) writeOnce(
	ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked,
) (publishing.CreateResult, *time.Time, error) {
	for waited := time.Duration(0); ; waited += keyPoll {
		out, due, err := s.write(ctx, p, cmd, entries)
		switch err {
		case nil:
			return out, due, nil
		case poststore.ErrKeyBusy:
			if waited >= keyWait || clock.Sleep(ctx, keyPoll) != nil {
				return publishing.CreateResult{}, nil, keyBusy()
			}
			continue
		case poststore.ErrKeyTaken:
			out, found, err := s.storedAnswer(ctx, p, cmd)
			if err != nil || found {
				return out, nil, err
			}
			continue // its posts have just been deleted, or it has become too old
		}
		if cmd.IdempotencyKey != "" {
			if out, found, _ := s.storedAnswer(ctx, p, cmd); found { // an error counts as not found
				return out, nil, nil
			}
		}
		return publishing.CreateResult{}, nil, db.PostFault("publishing.CreatePosts", err)
	}
}

const (
	keyWait = 5 * time.Second        // how long a request waits for another with the same key
	keyPoll = 100 * time.Millisecond // how often it checks whether the other request has ended
)

func keyBusy() error {
	return &fault.Error{
		Kind: fault.Conflict, Op: "publishing.CreatePosts", RetryAfter: time.Second,
		Message: "A request with this Idempotency-Key is still running; try again in a moment.",
	}
}

// keys holds the idempotency keys of all requests that are running in this process. A lock in
// Postgres excludes other processes (see poststore.ErrKeyBusy).
type keys struct {
	mu      sync.Mutex
	running map[string]chan struct{} // closed when the request ends
}

// enter waits until no other request in this process is using the key. It returns Conflict if the
// wait exceeds keyWait or if ctx ends. Otherwise, the caller must call leave exactly once.
func (k *keys) enter(ctx context.Context, org tenancy.OrgID, key string) (leave func(), err error) {
	key = org.String() + "/" + key
	ctx, cancel := context.WithTimeout(ctx, keyWait)
	defer cancel()
	for {
		k.mu.Lock()
		other, busy := k.running[key]
		if !busy {
			mine := make(chan struct{})
			k.running[key] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.running, key)
				k.mu.Unlock()
				close(mine)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, keyBusy()
		}
	}
}

// answer is the result for one entry, in the form in which it is stored with an idempotency key.
type answer struct {
	Post    publishing.PostID    `json:"post"`
	Channel publishing.ChannelID `json:"channel"`
	Date    time.Time            `json:"date,omitzero"`
	Zone    string               `json:"zone,omitempty"`
	Void    bool                 `json:"void,omitempty"`
	Draft   bool                 `json:"draft,omitempty"`
}

// storedAnswer returns the result that is already stored under a request's idempotency key.
// Mismatch is set in the result if a different request stored it. storedAnswer returns Conflict if
// that result is about channels that the principal may not see.
func (s *Posts) storedAnswer(
	ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts,
) (out publishing.CreateResult, found bool, err error) {
	const op = "publishing.storedAnswer"
	r, found, err := poststore.FindRemembered(ctx, s.db, p.Org, cmd.IdempotencyKey, cmd.RequestHash, cmd.ReplayFor)
	if err != nil || !found {
		return publishing.CreateResult{}, false, pg.Fault(op, err)
	}
	var answers []answer
	if err := json.Unmarshal(r.Body, &answers); err != nil {
		return publishing.CreateResult{}, false, pg.Fault(op, err)
	}
	if visible, err := s.showsAnswers(ctx, p, answers); err != nil || !visible {
		return publishing.CreateResult{}, false, hiddenAnswer(op, r.Mismatch, err)
	}
	out = publishing.CreateResult{Replayed: true, Mismatch: r.Mismatch}
	for _, a := range answers {
		out.Created = append(out.Created, publishing.Created{
			Post: a.Post, Channel: a.Channel, Date: a.Date, Zone: a.Zone,
			Approval: publishing.ApprovalEffect{Void: a.Void, Draft: a.Draft},
		})
	}
	return out, true, nil
}

// showsAnswers reports whether the principal sees the channels of a stored result. Keys are unique
// in the organization, so the result may be about channels that are hidden from the principal.
func (s *Posts) showsAnswers(ctx context.Context, p tenancy.Principal, answers []answer) (bool, error) {
	if !pg.IsNarrowed(ctx) {
		return true, nil
	}
	channels := map[publishing.ChannelID]bool{}
	for _, a := range answers {
		channels[a.Channel] = true
	}
	n, err := poststore.CountChannels(ctx, s.db, p.Org, slices.Collect(maps.Keys(channels)))
	return n == len(channels), err
}

// hiddenAnswer returns the error for a stored result that the principal may not see. If the request
// equals the one that stored the result, it names the hidden channels itself, and hiddenAnswer
// returns nil. The checks then report the hidden channels as if they did not exist.
func hiddenAnswer(op string, mismatch bool, err error) error {
	if err != nil || !mismatch {
		return pg.Fault(op, err)
	}
	return fault.New(fault.Conflict, op, "This Idempotency-Key has been used for another request; send another one.")
}

// remember stores the result under a request's idempotency key, in the transaction that writes the
// posts. It returns poststore.ErrKeyBusy if another request is using the key, and
// poststore.ErrKeyTaken if a result is already stored under the key.
func remember(
	ctx context.Context, tx *db.Tx, cmd publishing.CreatePosts, created []publishing.Created,
) error {
	if cmd.IdempotencyKey == "" {
		return nil
	}
	answers := make([]answer, len(created))
	for i, c := range created {
		answers[i] = answer{
			Post: c.Post, Channel: c.Channel, Date: c.Date, Zone: c.Zone, Void: c.Approval.Void,
			Draft: c.Approval.Draft,
		}
	}
	body, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	return poststore.Remember(ctx, tx, cmd.IdempotencyKey, cmd.RequestHash, body, cmd.ReplayFor)
}
