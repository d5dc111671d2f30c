package problem

import (
	"net/http"
	"slices"
	"testing"
)

// TestCatalogue_HasEveryStatusOfTheTables: the errors page is built from the catalogue.
func TestCatalogue_HasEveryStatusOfTheTables(t *testing.T) {
	t.Parallel()
	all := Catalogue()
	if !slices.IsSortedFunc(all, func(a, b Entry) int { return a.Status - b.Status }) {
		t.Errorf("got %+v, want it in the order of the statuses", all)
	}
	has := func(status int, message string) bool {
		return slices.ContainsFunc(all, func(e Entry) bool {
			return e.Status == status && e.Name == http.StatusText(status) && slices.Contains(e.Messages, message)
		})
	}
	for kind, r := range table {
		if !has(r.status, r.message) || r.remedy == "" {
			t.Errorf("%v has no entry with its message, or no remedy", kind)
		}
	}
	for status, message := range routing {
		if !has(status, message) {
			t.Errorf("%d has no entry with %q", status, message)
		}
	}
	if !has(http.StatusInternalServerError, internal) {
		t.Error("500 has no entry")
	}
}
