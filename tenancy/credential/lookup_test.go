package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/clock"
	"crier/tenancy"
)

// fakeKey is a credential in the fake database.
type fakeKey struct{ hash string }

func (fakeKey) Of() tenancy.OrgID { return tenancy.OrgID{} }

// database is a fake of the store. A look-up ends when the test sends to answer. It returns the
// keys that the database held when the look-up began.
type database struct {
	answer chan error
	keys   atomic.Pointer[map[string]fakeKey]

	mu    sync.Mutex
	asked []int // the number of hashes of each look-up
}

func newDatabase(keys ...string) *database {
	d := &database{answer: make(chan error)}
	d.hold(keys...)
	return d
}

func (d *database) hold(hashes ...string) {
	keys := map[string]fakeKey{}
	for _, hash := range hashes {
		keys[hash] = fakeKey{hash: hash}
	}
	d.keys.Store(&keys)
}

func (d *database) find(ctx context.Context, hashes [][]byte) (map[string]fakeKey, error) {
	d.mu.Lock()
	d.asked = append(d.asked, len(hashes))
	d.mu.Unlock()
	seen := map[string]fakeKey{}
	for hash, key := range *d.keys.Load() {
		if slices.ContainsFunc(hashes, func(h []byte) bool { return string(h) == hash }) {
			seen[hash] = key
		}
	}
	select {
	case err := <-d.answer:
		return seen, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *database) sizes() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.asked)
}

// ask looks up a key in a goroutine and returns a channel that receives "found", "none" or the text
// of an error.
func ask(find func(context.Context, []byte) (fakeKey, bool, error), hash string) <-chan string {
	out := make(chan string, 1)
	go func() {
		key, found, err := find(context.Background(), []byte(hash))
		switch {
		case err != nil:
			out <- err.Error()
		case found && key.hash == hash:
			out <- "found"
		default:
			out <- "none"
		}
	}()
	return out
}

func TestLookUps_WrongKeysShareOneStatementAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(MissPause) // lets run return, which synctest waits for
		d := newDatabase("good")
		l := NewLookups(d.find)
		first := ask(l.Get, "first")
		synctest.Wait()
		var wrong []<-chan string
		for i := range maxLookups - 1 {
			wrong = append(wrong, ask(l.Get, fmt.Sprint("wrong ", i)))
		}
		synctest.Wait()
		good := []<-chan string{ask(l.Get, "good"), ask(l.Get, "good")}
		synctest.Wait()
		late := ask(l.Get, "late")
		synctest.Wait()
		d.answer <- nil
		time.Sleep(MissPause - 1) // nothing was found, so there is a pause
		if got := d.sizes(); got != "[1]" {
			t.Errorf("statements for %s keys before the pause is over, want [1]", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		d.answer <- nil
		synctest.Wait() // a key was found, so there is no pause
		d.answer <- nil
		if got := d.sizes(); got != fmt.Sprintf("[1 %d 1]", maxLookups) {
			t.Errorf("statements for %s keys, want [1 %d 1]", got, maxLookups)
		}
		for _, answer := range append(wrong, first, late) {
			if got := <-answer; got != "none" {
				t.Fatalf("a wrong key: %s, want none", got)
			}
		}
		for _, answer := range good {
			if got := <-answer; got != "found" {
				t.Errorf("the good key: %s, want found", got)
			}
		}
	})
}

func TestLookUps_ReturnContextAndDatabaseErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(MissPause) // lets run return, which synctest waits for
		d := newDatabase()
		l := NewLookups(d.find)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := l.Get(ctx, []byte("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		next := ask(l.Get, "b")
		time.Sleep(lookupTimeout) // the statement of "a" reaches its time limit
		synctest.Wait()
		d.answer <- errors.New("the database is away")
		if got := <-next; got != "the database is away" {
			t.Errorf("got %q, want the error of the database", got)
		}
	})
}

func TestLookUps_DepartedCallersCauseNoStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(MissPause) // lets run return, which synctest waits for
		d := newDatabase("good", "shared")
		l := NewLookups(d.find)
		first := ask(l.Get, "first") // its statement runs until the test sends an answer
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		var left sync.WaitGroup
		for i := range 3 * maxLookups {
			left.Go(func() {
				if _, _, err := l.Get(ctx, []byte(fmt.Sprint("wrong ", i))); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want the context's error", err)
				}
			})
		}
		// Another caller waits for this key as well.
		left.Go(func() { _, _, _ = l.Get(ctx, []byte("shared")) })
		synctest.Wait()
		shared, good := ask(l.Get, "shared"), ask(l.Get, "good")
		synctest.Wait()
		leave()
		left.Wait()
		if len(l.waiting) != 2 || l.queue.Len() != 2 {
			t.Errorf("%d look-ups by hash and %d in the queue, want the 2 that have callers", len(l.waiting), l.queue.Len())
		}
		d.answer <- nil
		<-first
		time.Sleep(MissPause)
		synctest.Wait()
		d.answer <- nil
		for name, answer := range map[string]<-chan string{"shared": shared, "good": good} {
			if got := <-answer; got != "found" {
				t.Errorf("%s: %s, want found", name, got)
			}
		}
		if got := d.sizes(); got != "[1 2]" {
			t.Errorf("statements for %s keys, want one more statement for the two", got)
		}
	})
}

// batchOf returns look-ups without callers.
func batchOf(hashes ...string) (all []*lookUp[fakeKey]) {
	for _, hash := range hashes {
		all = append(all, &lookUp[fakeKey]{hash: hash, done: make(chan struct{})})
	}
	return all
}

func TestLookUp_LostDatabaseGetsOneStatement(t *testing.T) {
	t.Parallel()
	asked := 0
	l := NewLookups(func(context.Context, [][]byte) (map[string]fakeKey, error) {
		asked++
		return nil, io.ErrUnexpectedEOF
	})
	all := batchOf("a", "b", "c")
	if n := l.lookUp(all); n != 0 || asked != 1 {
		t.Errorf("%d found by %d statements, want one statement", n, asked)
	}
	for _, one := range all {
		<-one.done
		if one.found || !errors.Is(one.err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: found %t, %v, want the connection's error", one.hash, one.found, one.err)
		}
	}
}

// cacheOf returns a key cache of the database with a clock that returns *now.
func cacheOf(d *database, now *time.Time) *Cache[fakeKey] {
	return NewCache(clock.Func(func() time.Time { return *now }), nil, d.find)
}

func TestKeyCache_WrongKeyIsLookedUpOncePerUnknownFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(MissPause) // lets run return, which synctest waits for
		d, now := newDatabase(), time.Now()
		c := cacheOf(d, &now)
		answered := func(hash string) string {
			t.Helper()
			answer := ask(c.Find, hash)
			synctest.Wait()
			d.answer <- nil
			return <-answer
		}
		cached := func(hash string) string {
			t.Helper()
			answer := ask(c.Find, hash)
			synctest.Wait()
			select {
			case got := <-answer:
				return got
			default:
				t.Fatalf("%s is looked up again", hash)
				return ""
			}
		}
		if got := answered("a"); got != "none" {
			t.Fatalf("got %s, want none", got)
		}
		d.hold("a") // as if another process had made exactly this key
		now = now.Add(unknownFor - 1)
		if got := cached("a"); got != "none" {
			t.Errorf("before unknownFor is over: %s, want none", got)
		}
		now = now.Add(1)
		if got := answered("a"); got != "found" {
			t.Errorf("after unknownFor: %s, want found", got)
		}
		if got := answered("b"); got != "none" {
			t.Fatalf("got %s, want none", got)
		}
		d.hold("a", "b")
		c.Forget([]byte("b")) // as CreateKey does in this process
		if got := answered("b"); got != "found" {
			t.Errorf("a key that this process has created: %s, want found", got)
		}
		if got := cached("b"); got != "found" {
			t.Errorf("a found key: %s, want found", got)
		}
	})
}

func TestKeyCache_RequestAfterRevocationGetsNoEarlierResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(MissPause) // lets run return, which synctest waits for
		d, now := newDatabase("a"), time.Now()
		c := cacheOf(d, &now)
		before := ask(c.Find, "a")
		synctest.Wait() // the statement has seen the key
		d.hold()
		c.Forget([]byte("a"))
		after := ask(c.Find, "a")
		synctest.Wait()
		d.answer <- nil
		synctest.Wait()
		d.answer <- nil
		if got := <-before; got != "found" {
			t.Errorf("a request from before the revocation: %s, want found", got)
		}
		if got := <-after; got != "none" {
			t.Errorf("a request from after the revocation: %s, want none", got)
		}
	})
}

func TestKeyCache_LookUpDuringRevocationIsNotCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(MissPause) // lets run return, which synctest waits for
		d, now := newDatabase("a"), time.Now()
		c := cacheOf(d, &now)
		before := ask(c.Find, "a")
		synctest.Wait() // the statement has seen the key
		d.hold()
		c.Forget([]byte("a"))
		d.answer <- nil
		if got := <-before; got != "found" {
			t.Fatalf("got %s, want found", got)
		}
		after := ask(c.Find, "a")
		synctest.Wait()
		if len(after) != 0 {
			t.Fatalf("the revoked key is not looked up again: %s", <-after)
		}
		d.answer <- nil
		if got := <-after; got != "none" {
			t.Errorf("after the revocation: %s, want none", got)
		}
	})
}

func TestKeyCache_MissDuringCreationIsNotCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(MissPause) // lets run return, which synctest waits for
		d, now := newDatabase(), time.Now()
		c := cacheOf(d, &now)
		before := ask(c.Find, "a")
		synctest.Wait() // the statement has seen no key
		d.hold("a")
		c.Forget([]byte("a"))
		d.answer <- nil
		if got := <-before; got != "none" {
			t.Fatalf("got %s, want none", got)
		}
		after := ask(c.Find, "a")
		synctest.Wait()
		d.answer <- nil
		if got := <-after; got != "found" {
			t.Errorf("after it was created: %s, want found", got)
		}
	})
}

func TestAging_KeepsSizeAndLifetime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	a := boundedCache[int]{life: time.Minute, most: 100}
	for i := range 1000 {
		a.put(fmt.Sprint(i), i, now)
		if n := len(a.young) + len(a.old); n > 100 {
			t.Fatalf("%d values, want at most 100", n)
		}
	}
	if _, ok := a.get("950"); !ok {
		t.Error("one of the last fifty values is missing")
	}
	if _, ok := a.get("0"); ok {
		t.Error("the first value is still there")
	}
	now = now.Add(2 * time.Minute)
	a.put("new", 0, now)
	if n := len(a.young) + len(a.old); n != 1 {
		t.Errorf("%d values after twice their lifetime, want 1, the new one", n)
	}
	now = now.Add(time.Minute)
	a.put("newer", 0, now)
	if _, ok := a.get("new"); !ok {
		t.Error("a value is missing after its lifetime, though no other map was dropped")
	}
	a.drop("new")
	a.clear()
	if n := len(a.young) + len(a.old); n != 0 {
		t.Errorf("%d values after clear, want none", n)
	}
}
