package session

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	sessionstore "crier/tenancy/session/store"
)

func TestSession_WrongTokensShareOneStatementAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(credential.MissPause) // lets run return, which synctest waits for
		const took, wrong = time.Second, 100
		live := map[string]sessionstore.Session{
			string(secret.HashToken("good")): {Choices: []sessionstore.Choice{{Org: id.New[tenancy.OrgTag]()}}},
		}
		var asked []int
		a := &Sessions{lookUps: credential.NewLookups(
			func(_ context.Context, hashes [][]byte) (map[string]sessionstore.Session, error) {
				asked = append(asked, len(hashes)) // one at a time
				found := map[string]sessionstore.Session{}
				for _, hash := range hashes {
					if s, ok := live[string(hash)]; ok {
						found[string(hash)] = s
					}
				}
				time.Sleep(took)
				return found, nil
			},
		)}
		answers := make(chan error, wrong)
		for i := range wrong {
			go func() {
				_, err := a.Session(t.Context(), fmt.Sprint("wrong ", i), "", "", tenancy.Source{})
				answers <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		if _, err := a.Session(t.Context(), "good", "", "", tenancy.Source{}); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited > 2*took+credential.MissPause {
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
		if _, err := a.Session(t.Context(), "good", "", "", tenancy.Source{}); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("after its end: %v, want Unauthenticated", err)
		}
	})
}
