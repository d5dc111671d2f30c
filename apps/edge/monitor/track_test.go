package monitor_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge"
	"crier/tests/edgetest"
)

func TestTrack_CountsKindsAndNamesTheBrowser(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := edgetest.New(t, nil, func(d *edge.Deps) { d.Metrics = reg })
	const body = `{"tt":1,"fbclid":"click","additional":{"a":[1]}}`
	first := s.Call(t, "POST", "/public/t", body, "Content-Type", "application/json")
	edgetest.Want(t, first, 201, `{"track":"`)
	name := first.Header.Get("Set-Cookie")
	again := s.Call(t, "POST", "/user/t", body, "Content-Type", "application/json", "auth", edgetest.UserSession, "Cookie", name)
	if again.Body != first.Body {
		t.Errorf("with the cookie: got %s, want the same name as before: %s", again.Body, first.Body)
	}
	forged := s.Call(t, "POST", "/public/t", body, "Content-Type", "application/json", "Cookie", "track=<script>")
	if edgetest.Want(t, forged, 201, `{"track":"`); forged.Body == first.Body || forged.Header.Get("Set-Cookie") == "" {
		t.Errorf("with a forged cookie: got %s, want a new name", forged.Body)
	}
	for _, ignored := range []string{
		`{"tt":0,"fbclid":"` + strings.Repeat("x", 2000) + `"}`, `{"tt":0,"additional":[]}`, `{"tt":0,"fbclid":1,"additional":"x"}`, `{"tt":0,"fbclid":null,"additional":null}`,
	} {
		edgetest.Want(t, s.Call(t, "POST", "/public/t", ignored, "Content-Type", "application/json"), 201)
	}
	edgetest.Want(t, s.Call(t, "POST", "/public/t", `{"tt":0}`, "Content-Type", "text/plain;charset=UTF-8"), 201, `{"track":"`)
	edgetest.Want(t, s.Call(t, "POST", "/auth/login", `{}`, "Content-Type", "text/plain"), 400)
	for _, wrong := range []string{`{}`, `{"tt":5}`, `{"tt":-1}`, `{"tt":"1"}`} {
		edgetest.Want(t, s.Call(t, "POST", "/public/t", wrong, "Content-Type", "application/json"), 400, "tt")
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	registrations := families[1].GetMetric()[0] // kinds are sorted by name
	if n := registrations.GetCounter().GetValue(); n != 3 || strings.Contains(families[1].String(), "click") {
		t.Errorf("got %v, want three registrations and nothing else of the requests", families[1])
	}
}
