package edgetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crier/actors/org"
	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

// Day is the time at which everything in a World happened.
var Day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// World is the state of a Service's fakes. They record the calls of use cases in it and return what
// it holds.
type World struct {
	// Mu guards the fields that are neither atomic nor set before the first request. A test that
	// has read the responses to its requests needs no lock.
	Mu       sync.Mutex
	Creates  []publishing.CreatePosts
	Lists    []publishing.ListPosts
	IDs      []string // the ids and other names in calls, in order
	Customer string   // in the last list of channels
	Begun    publishing.BeginConnect
	Finished publishing.FinishConnect
	// Disconnected is the channel that was disconnected last.
	Disconnected string
	Orgs         []string       // the organizations that requests with sessions named
	Uploaded     int64          // bytes of the last upload
	From         tenancy.Source // in the last call that has one

	signIn tenancy.SignIn // the result of successful sign-ins; see SetSignIn
	calls  []string       // of account use cases; see TakeCalls

	// Creator is the person who created all organizations. Org, if set, is the organization of all
	// credentials.
	Creator tenancy.PersonID
	Org     tenancy.OrgID

	Err    error // if set, the use cases return it
	Result publishing.CreateResult
	Thread publishing.Thread
	File   []byte // the content of every stored file

	// Entering, if set, receives the address of each log-in with the password "slow", which then
	// waits for Release. If Release is set, creating posts and pausing also wait for it.
	Entering chan string
	Release  chan struct{}

	Creating      atomic.Int64 // creations of posts that started
	UploadBegan   atomic.Bool  // an upload has reached its use case
	FileClosed    atomic.Bool  // a file opened by its address was closed
	Admitted      atomic.Int64 // requests counted for their organization
	Authenticated atomic.Int64 // credentials checked

	Skew        atomic.Int64 // how far the clock is ahead of the system's clock, in nanoseconds
	RateLimited atomic.Bool  // organizations have no requests left
	Revoked     atomic.Bool  // all credentials are invalid
	Removed     atomic.Bool  // the person is no longer a member of the organization
	Unhealthy   atomic.Bool  // dependencies fail and the queue is late
	Private     atomic.Bool  // nobody can register
	Panics      atomic.Bool  // creating posts panics with "secret cause"
}

func newWorld() *World {
	thread := newThread()
	return &World{
		Thread: thread, File: []byte("0123456789"),
		Result: publishing.CreateResult{
			Created: []publishing.Created{{Post: thread.Root.ID, Channel: thread.Channel.ID}},
		},
		signIn: tenancy.SignIn{Session: UserSession, Device: "device-token"},
	}
}

// newThread returns a failed post with a picture, on a channel of the customer Acme.
func newThread() publishing.Thread {
	customer := publishing.Customer{ID: id.New[publishing.CustomerTag](), Name: "Acme"}
	channel := publishing.Channel{
		ID: id.New[publishing.ChannelTag](), Connector: "sandbox", Name: "News", Profile: "news", Customer: &customer,
	}
	why, code := "It was refused.", "rejected"
	return publishing.Thread{
		Channel: channel,
		Media:   map[publishing.MediaID]publishing.Medium{Picture.ID: Picture},
		Root: publishing.Post{
			ID: id.New[publishing.PostTag](), Group: id.New[publishing.GroupTag](), Channel: channel.ID,
			State: publishing.StateError, PublishDate: Day, CreationMethod: publishing.MethodAPI,
			Settings: []byte(`{"__type":"sandbox"}`), Error: &why, ErrorCode: &code,
			CreatedAt: Day, UpdatedAt: Day,
			Parts: []publishing.Part{{
				ID: id.New[publishing.PartTag](), Content: publishing.Content{Text: "Hello"},
				Media: []publishing.Attachment{{Media: Picture.ID, Alt: "a cat"}},
			}},
		},
	}
}

// TakeCalls returns and clears the recorded calls of account use cases. A call is the name of the
// use case and its arguments. Example: "Register ada@example.org Ada".
func (w *World) TakeCalls() []string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	out := slices.Clone(w.calls)
	w.calls = nil
	return out
}

// WantCalls fails the test unless exactly these calls were recorded since the last TakeCalls or
// WantCalls.
func (w *World) WantCalls(t *testing.T, calls ...string) {
	t.Helper()
	if got := w.TakeCalls(); !slices.Equal(got, calls) {
		t.Errorf("calls\n%q, want\n%q", got, calls)
	}
}

// Fail makes every later call return err, or succeed if err is nil.
func (w *World) Fail(err error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Err = err
}

// SetSignIn sets the result of sign-ins.
func (w *World) SetSignIn(s tenancy.SignIn) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.signIn = s
}

// note records ids and returns the error of the world.
func (w *World) note(ids ...string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.IDs = append(w.IDs, ids...)
	return w.Err
}

// sql returns an error, as a database would, if it could not store one of the texts.
func sql(texts ...string) error {
	for _, s := range texts {
		if !publishing.Storable(s) {
			return errors.New("invalid byte sequence for encoding UTF8")
		}
	}
	return nil
}

// limiter implements the port that counts the requests of organizations.
type limiter struct{ *World }

func (l limiter) Admit(context.Context, tenancy.OrgID) org.Admission {
	l.Admitted.Add(1)
	if l.RateLimited.Load() {
		return org.Admission{Limit: 60, Reset: Day, RetryAfter: 1500 * time.Millisecond}
	}
	return org.Admission{Allowed: true, Limit: 60, Remaining: 59, Reset: Day}
}

// health implements the health check port.
type health struct{ *World }

func (h health) Check(context.Context) (map[string]string, bool) {
	if h.Unhealthy.Load() {
		return map[string]string{"postgres": "failing"}, false
	}
	return map[string]string{"postgres": "ok"}, true
}
