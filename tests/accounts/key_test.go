package accounts

import (
	"context"
	"fmt"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/credential"
)

// listen makes an instance receive the revocations of all processes until the end of the test, and
// waits until it is connected.
func (w *rig) listen(a *boot.Accounts, l *credential.Listening) {
	w.t.Helper()
	ctx, end := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Listen(ctx, l)
	}()
	w.t.Cleanup(func() {
		end()
		<-done
	})
	w.await("the instance receives revocations", l.Healthy)
}

// await waits until is returns true.
func (w *rig) await(what string, is func() bool) {
	w.t.Helper()
	for range 5000 {
		if is() {
			return
		}
		must(w.t, clock.Sleep(w.t.Context(), 2*time.Millisecond))
	}
	w.t.Fatalf("waited in vain: %s", what)
}

// pair returns a rig and a second instance on the same database; both receive revocations.
func pair(t *testing.T) (*rig, *boot.Accounts) {
	t.Helper()
	var first, second credential.Listening
	w := open(t, func(w *rig) { w.deps.Revocations = &first })
	w.listen(w.Accounts, &first)
	w.deps.Revocations = &second
	other := w.instance()
	w.listen(other, &second)
	return w, other
}

// wantKey checks that all instances authenticate a key (want is "") or refuse it with a fault.
//
// The first instance must do so at once, the others once they have received the revocation. The
// test's clock stands still, so no cache entry expires.
func wantKey(t *testing.T, name string, key string, want fault.Kind, all ...*boot.Accounts) {
	t.Helper()
	for i, a := range all {
		var err error
		for tries := 0; ; tries++ {
			_, err = a.Authenticate(t.Context(), key)
			if (err == nil) == (want == "") && (err == nil || fault.Is(err, want)) {
				break
			}
			if i == 0 || tries == 5000 {
				t.Errorf("%s, instance %d: got %v, want %q", name, i, err, want)
				break
			}
			must(t, clock.Sleep(t.Context(), 2*time.Millisecond))
		}
	}
}

func (w *rig) key(p tenancy.Principal, name string) (string, tenancy.APIKey) {
	w.t.Helper()
	full, k, err := w.CreateKey(w.t.Context(), p, tenancy.NewKey{Name: name})
	must(w.t, err)
	return full, k
}

func TestKey_CreateListRenameDelete(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	past, far := w.time(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, bad := range map[string]tenancy.NewKey{
		"no name": {}, "NUL": {Name: "a\x00"}, "in the past": {Name: "a", ExpiresAt: &past}, "too far": {Name: "a", ExpiresAt: &far},
	} {
		_, _, err := w.CreateKey(t.Context(), p, bad)
		wantFault(t, name, err, fault.Invalid)
	}
	full, k := w.key(p, " CI ")
	w.advance(time.Second)
	_, second := w.key(p, "other")
	wantKey(t, "a new key", full, "", w.Accounts, other)
	got, err := w.Authenticate(t.Context(), full)
	if err != nil || got.Org != p.Org || got.Person != p.Person || got.Via != tenancy.ViaKey || got.Key != k.ID {
		t.Errorf("got %+v, %v, want the key's organization", got, err)
	}
	all, err := w.Keys(t.Context(), p)
	if err != nil || len(all) != 2 || all[0].ID != second.ID || all[1].Name != "CI" || all[1].CreatedByEmail != "ada@example.com" || all[1].UsedAt == nil || all[0].UsedAt != nil {
		t.Errorf("got %+v, %v, want the two keys, the newest first", all, err)
	}
	for _, bad := range []string{k.ID.String(), id.New[tenancy.KeyTag]().String(), "x", ""} {
		_, err := w.RenameKey(t.Context(), eve, bad, "mine")
		wantFault(t, "rename another's", err, fault.NotFound)
		wantFault(t, "delete another's", w.DeleteKey(t.Context(), eve, bad), fault.NotFound)
		if bad != "" {
			_, err = w.rotate(eve, bad, 0)
			wantFault(t, "rotate another's", err, fault.NotFound)
		}
	}
	if k, err := w.RenameKey(t.Context(), p, k.ID.String(), "CI 2"); err != nil || k.Name != "CI 2" {
		t.Errorf("rename: got %+v, %v", k, err)
	}
	must(t, w.DeleteKey(t.Context(), p, k.ID.String()))
	wantKey(t, "a deleted key", full, fault.Unauthenticated, w.Accounts, other)
	wantFault(t, "twice", w.DeleteKey(t.Context(), p, k.ID.String()), fault.NotFound)
	w.wantCount(1, "audit where action = $1 and subject = $2", tenancy.ActionKeyRevoked, "CI 2 ("+k.Prefix+"…)")
	for action, want := range map[tenancy.Action]int{tenancy.ActionKeyCreated: 2, tenancy.ActionKeyRenamed: 1, tenancy.ActionKeyRevoked: 1} {
		w.wantAudit(p.Org, action, want)
	}
	w.deliver()
	if got := len(w.box.to("ada@example.com")); got != 3 {
		t.Errorf("got the mails %s, want one for each change of a key", w.box.subjects("ada@example.com"))
	}
	wantKey(t, "no key", "", fault.Unauthenticated, w.Accounts)
}

func TestKey_MailsOwnerAndCreator(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleAdmin)
	w.member(p.Org, "carl@example.com", tenancy.RoleAdmin)
	w.key(bob, "CI")
	w.deliver()
	for email, want := range map[string]int{"ada@example.com": 1, "bob@example.com": 1, "carl@example.com": 0} {
		if got := len(w.box.to(email)); got != want {
			t.Errorf("got %d mails to %s, want %d", got, email, want)
		}
	}
}

func TestKey_RotationOverlaps(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p := w.owner("ada@example.com")
	made, err := w.rotate(p, "", 0) // without an id and without keys, it creates the first key
	must(t, err)
	first, k := made.Full, made.New
	if k.Name != "default" {
		t.Errorf("got the name %q, want default", k.Name)
	}
	for _, bad := range []int{-1, 73} {
		_, err := w.rotate(p, k.ID.String(), bad)
		wantFault(t, "overlap", err, fault.Invalid)
	}
	wantKey(t, "the first", first, "", w.Accounts, other)
	made, err = w.rotate(p, k.ID.String(), 2)
	must(t, err)
	second := made.Full
	wantKey(t, "the new one", second, "", w.Accounts, other)
	wantKey(t, "the old one", first, "", w.Accounts, other)
	w.advance(2*time.Hour - time.Second)
	wantKey(t, "the old one just before", first, "", w.Accounts, other)
	w.advance(time.Second)
	wantKey(t, "the old one after two hours", first, fault.Unauthenticated, w.Accounts, other)
	wantKey(t, "the new one", second, "", w.Accounts, other)
	_, err = w.rotate(p, k.ID.String(), 0)
	wantFault(t, "one that is over", err, fault.NotFound)
	made, err = w.rotate(p, "", 0)
	must(t, err)
	third := made.Full
	wantKey(t, "the second, without overlap", second, fault.Unauthenticated, w.Accounts, other)
	wantKey(t, "the third", third, "", w.Accounts, other)
	if all, err := w.Keys(t.Context(), p); err != nil || len(all) != 1 {
		t.Errorf("got %+v, %v, want the one that is not over", all, err)
	}
	w.wantAudit(p.Org, tenancy.ActionKeyRotated, 2)
}

func TestKey_RotationKeepsExpiry(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p := w.owner("ada@example.com")
	ends := w.time().Add(time.Hour)
	full, k, err := w.CreateKey(t.Context(), p, tenancy.NewKey{Name: "CI", ExpiresAt: &ends})
	must(t, err)
	made, err := w.rotate(p, k.ID.String(), 72)
	if err != nil || made.New.ExpiresAt == nil || !made.New.ExpiresAt.Equal(ends) {
		t.Fatalf("got %+v, %v, want the end of the old one", made, err)
	}
	wantKey(t, "before the end", full, "", w.Accounts, other)
	w.advance(time.Hour)
	wantKey(t, "the old one at the end", full, fault.Unauthenticated, w.Accounts, other)
	wantKey(t, "the new one at the end", made.Full, fault.Unauthenticated, w.Accounts, other)
}

func TestKey_OrganizationHasAtMostThousand(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.exec(`insert into api_key (org_id, id, name, prefix, hash, expires_at)
		select $1, gen_random_uuid(), 'k', 'crier_', sha256(n::text::bytea), case when n > 999 then $2::timestamptz end
		from generate_series(1, 1500) n`, p.Org, w.time())
	_, k := w.key(p, "the last")
	_, _, err := w.CreateKey(t.Context(), p, tenancy.NewKey{Name: "too many"})
	wantFault(t, "the 1001st", err, fault.Conflict)
	_, err = w.rotate(p, k.ID.String(), 1)
	wantFault(t, "a rotation with overlap", err, fault.Conflict)
	if _, err = w.rotate(p, k.ID.String(), 0); err != nil {
		t.Errorf("a rotation without overlap: %v", err)
	}
	if all, err := w.Keys(t.Context(), p); err != nil || len(all) != 1000 {
		t.Errorf("got %d keys, %v, want 1000", len(all), err)
	}
}

// TestKey_RevokedWhileConnectionIsLost checks that a process that lost its connection, and may have
// missed a revocation, does not rely on its cache.
func TestKey_RevokedWhileConnectionIsLost(t *testing.T) {
	t.Parallel()
	var l credential.Listening
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.deps.Revocations = &l
	other := w.instance()
	w.listen(other, &l)
	key, k := w.key(p, "CI")
	wantKey(t, "before", key, "", other)
	w.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and (query ilike '%listen crier_key%' or query ilike '%ping%') and pid <> pg_backend_pid()`)
	must(t, w.DeleteKey(t.Context(), p, k.ID.String()))
	w.await("the key is refused", func() bool {
		_, err := other.Authenticate(t.Context(), key)
		return fault.Is(err, fault.Unauthenticated)
	})
	w.await("the instance receives revocations again", l.Healthy)
	key, k = w.key(p, "next")
	wantKey(t, "the next one", key, "", other)
	must(t, w.DeleteKey(t.Context(), p, k.ID.String()))
	wantKey(t, "the next one, revoked", key, fault.Unauthenticated, w.Accounts, other)
}

// TestKey_DeletedOrganizationEvictsOnlyItsKeys checks that other organizations' keys stay cached
// and so work without the database.
func TestKey_DeletedOrganizationEvictsOnlyItsKeys(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	key, _ := w.key(p, "CI")
	evesKey, _ := w.key(eve, "CI")
	for _, k := range []string{key, evesKey} {
		wantKey(t, "before", k, "", w.Accounts, other)
	}
	// No process is notified of this.
	w.exec("update api_key set expires_at = $1 where org_id = $2", w.time(), eve.Org)
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	wantKey(t, "a key of the organization", key, fault.Unauthenticated, w.Accounts, other)
	for _, a := range []*boot.Accounts{w.Accounts, other} {
		wantKey(t, "a key of another one, from the cache", evesKey, "", a)
	}
	must(t, w.RestoreOrganization(t.Context(), p, p.Org.String()))
	wantKey(t, "after the undo", key, "", w.Accounts, other)
}

func TestKey_RotatedTwiceKeepsBothPromises(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	p := w.owner("ada@example.com")
	first, k := w.key(p, "CI")
	made, err := w.rotate(p, k.ID.String(), 24)
	must(t, err)
	if made.New.ExpiresAt != nil || made.Old.ID != k.ID || !made.Old.Ends().Equal(w.time().Add(24*time.Hour)) {
		t.Errorf("got %+v, want a new key without an end, and the old one for a day", made)
	}
	// Without an id, the oldest key is rotated: the new one, created a moment ago.
	for _, id := range []string{k.ID.String(), ""} {
		_, err = w.rotate(p, id, 0)
		wantFault(t, "a second rotation of "+id, err, fault.Conflict)
	}
	w.advance(10 * time.Minute)
	next, err := w.rotate(p, "", 0)
	if err != nil || next.Old.ID != made.New.ID || next.New.ExpiresAt != nil {
		t.Errorf("got %+v, %v, want the new key replaced by one without an end", next, err)
	}
	wantKey(t, "the first in its overlap", first, "", w.Accounts, other)
	wantKey(t, "the second without an overlap", made.Full, fault.Unauthenticated, w.Accounts, other)
	w.advance(24 * time.Hour)
	wantKey(t, "the first behind its overlap", first, fault.Unauthenticated, w.Accounts, other)
	wantKey(t, "the third", next.Full, "", w.Accounts, other)
}

func TestKey_ConcurrentRotationsKeepNewKeys(t *testing.T) {
	t.Parallel()
	w, other := pair(t)
	for _, overlap := range []int{0, 24} {
		p := w.owner(fmt.Sprintf("ada%d@example.com", overlap))
		_, k := w.key(p, "CI")
		for _, id := range []string{"", k.ID.String()} {
			type result struct {
				tenancy.Rotation
				err error
			}
			made := together(2, func(i int) result {
				r, err := []*boot.Accounts{w.Accounts, other}[i].RotateKey(t.Context(), p, id, overlap, tenancy.Proof{})
				return result{Rotation: r, err: err}
			})
			for _, r := range made {
				if r.err == nil {
					wantKey(t, "a key that was returned", r.Full, "", w.Accounts, other)
				}
				if r.err == nil && r.New.ExpiresAt != nil {
					t.Errorf("got the end %v, want none", r.New.ExpiresAt)
				}
			}
			w.advance(time.Minute)
		}
		w.wantCount(2, "api_key where org_id = $1", p.Org)
	}
}
