package service

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
	"crier/tests/dbtest"
)

func TestSession_WrongTokensShareOneStatementAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(missPause) // lets run return, which synctest waits for
		const took, wrong = time.Second, 100
		live := map[string]tenancystore.Session{
			string(secret.HashToken("good")): {Choices: []tenancystore.Choice{{Org: id.New[tenancy.OrgTag]()}}},
		}
		var asked []int
		a := &Accounts{sessions: &lookUps[tenancystore.Session]{
			find: func(_ context.Context, hashes [][]byte) (map[string]tenancystore.Session, error) {
				asked = append(asked, len(hashes)) // one at a time
				found := map[string]tenancystore.Session{}
				for _, hash := range hashes {
					if s, ok := live[string(hash)]; ok {
						found[string(hash)] = s
					}
				}
				time.Sleep(took)
				return found, nil
			},
		}}
		answers := make(chan error, wrong)
		for i := range wrong {
			go func() {
				_, err := a.Session(t.Context(), fmt.Sprint("wrong ", i), "", "", here)
				answers <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		if _, err := a.Session(t.Context(), "good", "", "", here); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited > 2*took+missPause {
			t.Errorf("a session waits for %s, want two statements and a pause", waited)
		}
		for range wrong {
			if err := <-answers; !fault.Is(err, fault.Unauthenticated) {
				t.Fatalf("a wrong token: %v, want Unauthenticated", err)
			}
		}
		if len(asked) != 2 || asked[0]+asked[1] != wrong+1 {
			t.Errorf("statements for %d tokens, want two for all", asked)
		}
		clear(live)
		if _, err := a.Session(t.Context(), "good", "", "", here); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("after its end: %v, want Unauthenticated", err)
		}
	})
}

func TestSession_IsFoundWhileItsRowIsLocked(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	now := time.Now()
	a, err := New(Config{}, Deps{DB: dbtest.OpenURL(t, address), Clock: clock.Func(func() time.Time { return now })})
	if err != nil {
		t.Fatal(err)
	}
	person, err := a.CreateOwner(t.Context(), NewOwner{Email: "a@example.com", Name: "N", Password: "correct horse", Organization: "O"})
	if err != nil {
		t.Fatal(err)
	}
	signIn, err := a.Login(t.Context(), "a@example.com", "correct horse", here)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	other, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }() // of the test
	seen := func() (at time.Time) {
		t.Helper()
		if err := other.QueryRow(t.Context(), "select seen_at from session").Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	if _, err := other.Exec(t.Context(), "begin; select from session for update"); err != nil { // as another process
		t.Fatal(err)
	}
	if p, err := a.Session(t.Context(), signIn.Session, "", "", here); err != nil || p.Org != person.Org {
		t.Errorf("got %+v and error %v, want the organization %s", p, err, person.Org)
	}
	if _, err := other.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if at := seen(); now.Sub(at) < time.Minute {
		t.Errorf("the use is written at %s while another process writes it", at)
	}
	if _, err := a.Session(t.Context(), signIn.Session, "", "", here); err != nil {
		t.Error(err)
	}
	if at := seen(); now.Sub(at) > time.Second {
		t.Errorf("the last use is %s, want %s", at, now)
	}
}
