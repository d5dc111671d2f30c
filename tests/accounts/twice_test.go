package accounts

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"crier/apps/edge"
	"crier/tests/call"
)

// twice is a request that is sent twice, and what must hold afterwards.
type twice struct {
	// ids are the values of the path parameters, in order.
	ids     []string
	query   string
	body    any
	headers []string
	// as sends the request; nil for the owner.
	as *owner
	// refused are statuses allowed for the second response besides 404, 409 and 410.
	refused []int
	// holds checks the promises of the responses that were not refusals: one or two.
	holds func(kept []call.Answer)
}

// prepare creates what a request needs and returns the request.
type prepare func(o *owner) twice

// TestTwice_SecondAnswerKeepsThePromisesOfTheFirst sends each unsafe request twice, to two
// processes on one database: in sequence and concurrently.
func TestTwice_SecondAnswerKeepsThePromisesOfTheFirst(t *testing.T) {
	t.Parallel()
	cases := twiceCases()
	wantEveryUnsafeRoute(t, cases)
	p := startProcesses(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if testing.Short() && rand.IntN(10) > 0 {
			continue
		}
		for _, atOnce := range []bool{false, true} {
			mode := map[bool]string{false: "in a row", true: "at once"}[atOnce]
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				o := p.owner(t)
				x := cases[name](o)
				x.holds(o.kept(x, o.both(name, x, atOnce)))
			})
		}
	}
}

// wantEveryUnsafeRoute compares the cases with the route table. A case is named after its route
// and, after a comma, what is special about it.
func wantEveryUnsafeRoute(t *testing.T, cases map[string]prepare) {
	t.Helper()
	covered := map[string]bool{}
	for name := range cases {
		route, _, _ := strings.Cut(name, ", ")
		covered[route] = true
	}
	routes := map[string]bool{}
	for _, r := range edge.Routes() {
		if r.State != edge.Built || r.Method == http.MethodGet || strings.HasPrefix(r.Path, "/api/") {
			continue
		}
		name := r.String()
		routes[name] = true
		if excepted := untried[name] != ""; covered[name] == excepted {
			t.Errorf("%s has a case: %v, and a reason to have none: %v; want one of them", name, covered[name], excepted)
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(covered)), slices.Collect(maps.Keys(untried))) {
		if !routes[name] {
			t.Errorf("%s is no unsafe route", name)
		}
	}
}

// both sends the request of a case to both processes.
func (o *owner) both(name string, x twice, atOnce bool) (answers [2]call.Answer) {
	o.t.Helper()
	route, _, _ := strings.Cut(name, ", ")
	method, path, _ := strings.Cut(route, " ")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i], x.ids = x.ids[0], x.ids[1:]
		}
	}
	if x.as == nil {
		x.as = o
	}
	var errs [2]error
	send := func(node int) {
		answers[node], errs[node] = x.as.send(node, method, strings.Join(parts, "/")+x.query, x.body, x.headers...)
	}
	if atOnce {
		var both sync.WaitGroup
		both.Go(func() { send(0) })
		both.Go(func() { send(1) })
		both.Wait()
	} else {
		send(0)
		send(1)
	}
	for _, err := range errs {
		must(o.t, err)
	}
	return answers
}

// kept returns the successful responses, whose promises must hold. At least one must succeed; the
// other may be a refusal.
func (o *owner) kept(x twice, answers [2]call.Answer) (kept []call.Answer) {
	o.t.Helper()
	allowed := append([]int{http.StatusNotFound, http.StatusConflict, http.StatusGone}, x.refused...)
	for i, a := range answers {
		switch {
		case a.Status < 400:
			kept = append(kept, a)
		case !slices.Contains(allowed, a.Status):
			o.t.Errorf("answer %d is %v, want success or one of %v", i, a, allowed)
		}
	}
	if len(kept) == 0 {
		o.t.Fatalf("got %v, want at least one success", answers)
	}
	return kept
}

// untried lists the unsafe routes without a case, with reasons.
var untried = map[string]string{
	"POST /auth/unsubscribe":                   "it sets switches to one value and promises no more; a second answer sets the same",
	"POST /integrations/function":              "what it does is the platform's, and the sandbox has no tools",
	"POST /public/v1/integration-trigger/{id}": "what it does is the platform's, and the sandbox has no tools",
	"POST /public/t":                           "it counts and stores nothing",
	"POST /user/t":                             "it counts and stores nothing",
	"POST /auth/oauth/{provider}/exists":       "it needs an identity provider: TestProvider_StateIsOfTheBrowserAndOnce finishes one state eight times at once",
	"DELETE /mcp":                              "it always returns 405, because the server has no sessions",
	"POST /oauth/introspect":                   "it describes a token and changes nothing",
}
