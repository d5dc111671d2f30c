package pictures

import (
	"maps"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"crier/platform/id"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// No organization is served twice in a row while another one waits; no job is lost or doubled.
func TestFairQueue_TakesTurnsWithinItsBounds(t *testing.T) {
	t.Parallel()
	organizations := make([]tenancy.OrgID, 4)
	for i := range organizations {
		organizations[i] = id.New[tenancy.OrgTag]()
	}
	rapid.Check(t, func(t *rapid.T) {
		q := fairQueue{each: 5, all: 12}
		waiting := map[pictureJob]bool{}
		of := map[tenancy.OrgID]int{}
		var last tenancy.OrgID             // served last
		others := map[tenancy.OrgID]bool{} // that waited then and still do
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "pop") {
				j, found := q.pop()
				if found != (len(waiting) > 0) || found && !waiting[j] {
					t.Fatalf("%v, %t of %d", j, found, len(waiting))
				}
				if found && j.org == last && len(others) > 0 {
					t.Fatalf("an organization is served twice in a row while %d others wait", len(others))
				}
				if !found {
					continue
				}
				delete(waiting, j)
				of[j.org]--
				last, others = j.org, map[tenancy.OrgID]bool{}
				for org, n := range of {
					if org != j.org && n > 0 {
						others[org] = true
					}
				}
				continue
			}
			if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
				org := rapid.SampledFrom(organizations).Draw(t, "dropped")
				q.drop(org)
				maps.DeleteFunc(waiting, func(j pictureJob, _ bool) bool { return j.org == org })
				of[org] = 0
				delete(others, org)
				if q.size != len(waiting) {
					t.Fatalf("%d jobs are counted as %d after a drop", len(waiting), q.size)
				}
				continue
			}
			j := pictureJob{rapid.SampledFrom(organizations).Draw(t, "org"), publishingstore.PictureKey{Spec: strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "spec"))}}
			room := waiting[j] || of[j.org] < 5 && len(waiting) < 12
			if q.push(j) != room {
				t.Fatalf("room %t for %v beside %d", room, j, len(waiting))
			}
			if room && !waiting[j] {
				waiting[j] = true
				of[j.org]++
			}
			if q.size != len(waiting) {
				t.Fatalf("%d jobs are counted as %d", len(waiting), q.size)
			}
		}
	})
}
