package audit_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestAudit_AsJSON(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.Call(t, "GET", "/settings/audit?from=2026-01-01&to=2026-02-01T00:00:00%2B02:00&actor=ada&action=key.created&page=2&limit=50", "", "auth", edgetest.AdminSession)
	edgetest.Want(t, a, 200, `"action":"key.created","actor":"ada@example.org","actorId":"`+edgetest.PersonID.String()+`","via":"session","keyId":null,"behind":null`,
		`"actorId":null,"via":"key","keyId":"`+edgetest.KeyID.String()+`","behind":"@root"`)
	if a.Header.Get("X-Has-More") != "true" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got the headers %v, want X-Has-More and JSON", a.Header)
	}
	edgetest.Want(t, s.Call(t, "GET", "/settings/audit", "", "auth", edgetest.AdminSession), 200)
	s.WantCalls(t, "Audit 2026-01-01 2026-01-31 ada key.created 2 50", "Audit 0001-01-01 0001-01-01   0 100")
	edgetest.Want(t, s.Call(t, "GET", "/settings/audit?from=x&to=y&page=-1&limit=1001&actor="+strings.Repeat("a", 129), "", "auth", edgetest.AdminSession), 400,
		"from must be", "to must be", "page must be", "limit must be", "actor must be")
}

// TestAudit_CSVHasNoFormulas: a spreadsheet evaluates a cell that begins with one of these
// characters.
func TestAudit_CSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.Call(t, "GET", "/settings/audit", "", "auth", edgetest.AdminSession, "Accept", "text/csv")
	rows, err := csv.NewReader(strings.NewReader(a.Body)).ReadAll()
	if err != nil || len(rows) != 3 || a.Header.Get("X-Has-More") != "true" {
		t.Fatalf("got %d rows, error %v and the headers %v", len(rows), err, a.Header)
	}
	if kind := a.Header.Get("Content-Type"); kind != "text/csv; charset=utf-8" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("got the headers %v, want a CSV file", a.Header)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("the cell %q is a formula", cell)
			}
		}
	}
	if rows[1][8] != `'=HYPERLINK("x")` || rows[2][3] != "'+bot" || rows[2][7] != "'@root" || rows[2][8] != "'-1" {
		t.Errorf("got the rows %q", rows[1:])
	}
}
