package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestSamples_Work runs the samples in the reference, with a separate organization per language.
// The output of each sample must have the members of the example.
func TestSamples_Work(t *testing.T) {
	t.Parallel()
	r, receiver := startExamples(t)
	d, all := publicOperations(t, r)
	all = slices.DeleteFunc(all, func(op documented) bool { return !strings.HasPrefix(op.path, "/public/v1/") })
	page := r.samples(t, "/docs")
	for language, runner := range runners {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			w := r.exampleWorld(t, receiver)
			samples := w.samplesOf(t, page, language, all)
			got := runner.run(t, samples, "CRIER_API_KEY="+w.key)
			for _, op := range all {
				_, want := op.success()
				var answer any
				if err := json.Unmarshal([]byte(got[op.ID]), &answer); err != nil {
					t.Errorf("%s: got %q, want the JSON of an answer", op.ID, got[op.ID])
					continue
				}
				c := comparison{enumerated: d.enumerated(want.Schema)}
				for _, difference := range c.differences(want.Example, answer, op.ID) {
					t.Error(difference)
				}
			}
		})
	}
}

// samplesOf returns the samples in a language, in the order of the operations, with the
// organization's ids and the service's address. The page must have a sample of each operation.
func (w exampleWorld) samplesOf(t *testing.T, page []sample, language string, all []documented) (out []sample) {
	t.Helper()
	for _, op := range all {
		is := func(s sample) bool { return s.language == language && s.operation == op.ID }
		i := slices.IndexFunc(page, is)
		if i < 0 {
			t.Errorf("%s has no sample in %s", op.ID, language)
			continue
		}
		s := page[i]
		s.code = strings.ReplaceAll(w.replace(s.code), base+"/public", "http://"+w.app.Addr()+"/public")
		out = append(out, s)
	}
	return out
}
