package signin_test

import (
	"testing"
	"time"

	"crier/apps/edge"
	"crier/tests/edgetest"
)

func FuzzLogin(f *testing.F) {
	for _, seed := range []string{
		`{"email":"ada@example.org","password":"right"}`, `{"email":"a\u0000@example.org","password":"x"}`, `{"email":"a@\u0000","password":"\u0000","provider":"\u0000"}`,
		"{\"email\":\"a\xff@b\",\"password\":\"x\"}", `{"email":"\ud800@b","password":"\udc00"}`, "\xef\xbb\xbf{}", "\xef\xbb\xbf", `{"email":null}`, `{"email":{}}`, "[]", "",
	} {
		f.Add(seed)
	}
	h := edgetest.NewClock()
	s := edgetest.New(f, nil, func(d *edge.Deps) { d.Clock = h })
	f.Fuzz(func(t *testing.T, body string) {
		h.Forward(time.Hour) // past the limit on attempts
		edgetest.WantNoServerError(t, s.Call(t, "POST", "/auth/login", body, "Content-Type", "application/json"))
	})
}
