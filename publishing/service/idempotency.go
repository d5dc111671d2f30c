package service

import (
	"context"
	"encoding/json"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// answer is what an idempotency key remembers.
type answer struct {
	Post    publishing.PostID    `json:"postId"`
	Channel publishing.ChannelID `json:"integration"`
}

// Create makes one post for each entry, or none at all.
func (s *Posts) Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error) {
	if cmd.IdempotencyKey == "" {
		return s.create(ctx, p, cmd)
	}
	release, err := s.enter(ctx, p.Org.String()+"/"+cmd.IdempotencyKey)
	if err != nil {
		return publishing.CreateResult{}, err
	}
	defer release()
	if r, found, err := s.remembered(ctx, p, cmd); err != nil || found {
		return r, err
	}
	return s.create(ctx, p, cmd)
}

const keyWait = 5 * time.Second

func keyBusy() error {
	return &fault.Error{Kind: fault.Conflict, Op: "publishing.CreatePosts", RetryAfter: time.Second, Message: "A request with this Idempotency-Key is still running; ask again in a moment."}
}

// enter waits until no other request of this process works on the key.
func (s *Posts) enter(ctx context.Context, key string) (release func(), err error) {
	patience, cancel := context.WithTimeout(ctx, keyWait)
	defer cancel()
	for {
		s.mu.Lock()
		other, busy := s.running[key]
		if !busy {
			mine := make(chan struct{})
			s.running[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.running, key)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-patience.Done():
			return nil, keyBusy()
		}
	}
}

func (s *Posts) remembered(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, bool, error) {
	const op = "publishing.remembered"
	r, found, err := s.store.Remembered(ctx, p.Org, cmd.IdempotencyKey, cmd.RequestHash)
	if err != nil || !found {
		return publishing.CreateResult{}, false, internal(op, err)
	}
	var answers []answer
	if err := json.Unmarshal(r.Body, &answers); err != nil {
		return publishing.CreateResult{}, false, internal(op, err)
	}
	out := publishing.CreateResult{Replayed: true, Mismatch: r.Mismatch}
	for _, a := range answers {
		out.Created = append(out.Created, publishing.Created{Post: a.Post, Channel: a.Channel})
	}
	return out, true, nil
}

const keyPoll = 100 * time.Millisecond
