package publishing_test

import (
	"encoding/json"
	"testing"

	"crier/publishing"
)

// Idempotency-Keys are stored with a hash of the encoded command, so a member that a request does
// not use must not change it.
func TestCreatePosts_EncodesNoUnusedMembers(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(publishing.CreatePosts{Entries: []publishing.CreateEntry{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var cmd map[string]json.RawMessage
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(got, &cmd); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(cmd["Entries"], &entries); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ReplayFor", "NoDuplicates", "DryRun"} {
		if _, found := cmd[name]; found {
			t.Errorf("%s has %s, want it to be left out", got, name)
		}
	}
	if _, found := entries[0]["Date"]; found {
		t.Errorf("%s has the date of an entry, want it to be left out", got)
	}
}
