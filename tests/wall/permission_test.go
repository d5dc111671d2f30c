package wall

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"crier/apps/edge"
)

// caller is a kind of caller of the service's routes; see fixture for each of them.
type caller string

// matrix gives the response that each caller gets from the routes of a permission:
//
//	ok   neither 401 nor 403
//	own  ok for the caller's own organization: 404 on a built route with an id in its path,
//	     because the calls name ids of another organization
//	safe own for methods that change nothing, otherwise 403
//	read ok for methods that change nothing, otherwise 403
//	401, 403, 404 exactly that status
const matrix = `
         nobody expired operator user admin owner acting other intruder removed suspended unenrolled instance key otherkey revokedkey suspendedkey agent reader
public   ok     ok      ok       ok   ok    ok    ok     ok    ok       ok      ok        ok         ok       ok  ok       ok         ok           ok    ok
monitor  403    403     ok       403  403   403   403    403   403      403     403       403        403      403 403      403        403          403   403
key      401    401     401      401  401   401   401    401   401      401     401       401        401      ok  own      401        403          ok    read
keyonly  401    401     401      401  401   401   401    401   401      401     401       401        401      ok  own      401        403          403   403
agent    401    401     401      401  401   401   401    401   401      401     401       401        401      ok  ok       401        403          ok    ok
member   401    401     401      ok   ok    ok    ok     own   safe     403     403       403        own      401 401      401        401          401   401
admin    401    401     401      403  ok    ok    ok     own   safe     403     403       403        own      401 401      401        401          401   401
owner    401    401     401      403  403   ok    ok     own   safe     403     403       403        own      401 401      401        401          401   401
person   401    401     401      ok   ok    ok    ok     ok    ok       ok      ok        ok         ok       401 401      401        401          401   401
instance 401    401     401      403  403   403   ok     403   403      403     403       403        ok       401 401      401        401          401   401
client   401    401     401      401  401   401   401    401   401      401     401       401        401      401 401      401        401          401   401
`

// wanted is what a caller gets: one of the words of the matrix.
type wanted string

const (
	wantOK   wanted = "ok"
	wantOwn  wanted = "own"
	wantSafe wanted = "safe"
	wantRead wanted = "read"
)

// permissionTable has the permission of each route, by "METHOD path".
type permissionTable struct {
	callers []caller
	// classes has the rows of the matrix.
	classes map[string]map[caller]wanted
	routes  map[string]permissionRow
}

type permissionRow struct {
	class string
	// self means that nobody may use the route while impersonating another person.
	self       bool
	exceptions map[caller]wanted
}

// readPermissions returns the table of testdata/permissions.txt.
func readPermissions(t *testing.T) permissionTable {
	t.Helper()
	text, err := os.ReadFile("testdata/permissions.txt")
	if err != nil {
		t.Fatal(err)
	}
	table, err := parsePermissions(matrix, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// parsePermissions returns the table of a matrix and of the permissions of routes, and every
// mistake in them.
func parsePermissions(matrix, text string) (permissionTable, error) {
	table := permissionTable{classes: map[string]map[caller]wanted{}, routes: map[string]permissionRow{}}
	var faults []error
	for i, line := range strings.Split(strings.TrimSpace(matrix), "\n") {
		words := strings.Fields(line)
		if i == 0 {
			for _, word := range words {
				table.callers = append(table.callers, caller(word))
			}
			continue
		}
		if len(words) != len(table.callers)+1 {
			return table, fmt.Errorf("the row %q of the matrix has %d cells, want %d", words[0], len(words)-1, len(table.callers))
		}
		row := map[caller]wanted{}
		for j, who := range table.callers {
			row[who] = wanted(words[j+1])
		}
		table.classes[words[0]] = row
	}
	for _, line := range strings.Split(text, "\n") {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			faults = append(faults, table.add(words))
		}
	}
	return table, errors.Join(faults...)
}

// add adds the line of one route.
func (p permissionTable) add(words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("the line %q has no permission", strings.Join(words, " "))
	}
	name := words[0] + " " + words[1]
	row := permissionRow{exceptions: map[caller]wanted{}}
	row.class, _, row.self = strings.Cut(words[2], "+")
	if p.classes[row.class] == nil || row.self && words[2] != row.class+"+self" {
		return fmt.Errorf("%s has the unknown permission %s", name, words[2])
	}
	if _, twice := p.routes[name]; twice {
		return fmt.Errorf("%s has two lines", name)
	}
	for _, word := range words[3:] {
		who, want, _ := strings.Cut(word, "=")
		if !slices.Contains(p.callers, caller(who)) || want == "" {
			return fmt.Errorf("%s has the exception %q, want caller=status", name, word)
		}
		row.exceptions[caller(who)] = wanted(want)
	}
	p.routes[name] = row
	return nil
}

// name returns the name of a route in the table: an alias has the name of the original route.
func (p permissionTable) name(r edge.Route) string {
	if path, alias := strings.CutPrefix(r.Path, "/api"); alias && strings.HasPrefix(path, "/public/v1/") {
		return r.Method + " " + path
	}
	return r.String()
}

// of returns what a caller gets from a route: ok, own, or a status.
func (p permissionTable) of(r edge.Route, who caller) wanted {
	row := p.routes[p.name(r)]
	want := p.classes[row.class][who]
	if exception, ok := row.exceptions[who]; ok {
		want = exception
	}
	switch {
	case row.self && who == "acting":
		return "403"
	case want == wantSafe && r.Method == http.MethodGet:
		return wantOwn
	case want == wantRead && r.Method == http.MethodGet:
		return wantOK
	case want == wantSafe, want == wantRead:
		return "403"
	}
	return want
}

// uncovered returns a message for each route without a line and each line without a route.
func (p permissionTable) uncovered(routes []edge.Route) (out []string) {
	lines := maps.Clone(p.routes)
	for _, r := range routes {
		if _, ok := p.routes[p.name(r)]; !ok {
			out = append(out, r.String()+" has no permission")
		}
		delete(lines, p.name(r))
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		out = append(out, name+" has a permission and is no route")
	}
	return out
}

// surprise returns why the status of a response is not what a caller should get, or "" if it is.
func (p permissionTable) surprise(r edge.Route, who caller, status int) string {
	want := p.of(r, who)
	switch {
	case want != wantOK && want != wantOwn:
		if fmt.Sprint(status) == string(want) {
			return ""
		}
	case r.State != edge.Built:
		want = "501"
		if status == http.StatusNotImplemented {
			return ""
		}
	case want == wantOwn && strings.Contains(r.Path, "{"):
		want = "404"
		if status == http.StatusNotFound {
			return ""
		}
	case status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusTooManyRequests &&
		status < 500:
		return ""
	}
	return fmt.Sprintf("%s as %s is answered with %d, want %s", r, who, status, want)
}

func TestPermissions_EveryRouteHasLine(t *testing.T) {
	t.Parallel()
	routes := edge.Routes()
	for _, fault := range readPermissions(t).uncovered(routes) {
		t.Error(fault)
	}
	if len(routes) < 300 {
		t.Errorf("there are %d routes, so this test sees too few", len(routes))
	}
}

func TestUncovered_ReportsEachFault(t *testing.T) {
	t.Parallel()
	table, routes := readPermissions(t), edge.Routes()
	added := append(slices.Clone(routes), edge.Route{Method: "GET", Path: "/settings/new", Credential: "admin"})
	if got := table.uncovered(added); !slices.Equal(got, []string{"GET /settings/new has no permission"}) {
		t.Errorf("a new route: got %q", got)
	}
	method := slices.Clone(routes)
	i := slices.IndexFunc(method, func(r edge.Route) bool { return r.String() == "PUT /settings/pause" })
	method[i].Method = "POST"
	want := []string{"POST /settings/pause has no permission", "PUT /settings/pause has a permission and is no route"}
	if got := table.uncovered(method); !slices.Equal(got, want) {
		t.Errorf("a route with another method: got %q, want %q", got, want)
	}
}

func TestParsePermissions_RefusesMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"GET /x":                    "has no permission",
		"GET /x admins":             "unknown permission admins",
		"GET /x admin+other":        "unknown permission admin+other",
		"GET /x user\n":             "unknown permission user",
		"GET /x key\nGET /x member": "has two lines",
		"GET /x key nobodies=ok":    `the exception "nobodies=ok"`,
		"GET /x key nobody":         `the exception "nobody"`,
	} {
		if _, err := parsePermissions(matrix, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := parsePermissions("nobody user\nkey 401", ""); err == nil {
		t.Error("a row of the matrix that is too short: got no error")
	}
}
