package pictures

import (
	"maps"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"crier/platform/id"
	picturesstore "crier/publishing/pictures/store"
	"crier/tenancy"
)

// No organization is served twice in a row while another one waits, and no job is lost or repeated.
func TestFairQueue_ServesInTurnWithinItsBounds(t *testing.T) {
	t.Parallel()
	organizations := make([]tenancy.OrgID, 4)
	for i := range organizations {
		organizations[i] = id.New[tenancy.OrgTag]()
	}
	rapid.Check(t, func(t *rapid.T) {
		q := fairQueue{each: 5, all: 12}
		waiting := map[pictureJob]bool{}
		of := map[tenancy.OrgID]int{}
		var last tenancy.OrgID             // the organization that was served last
		others := map[tenancy.OrgID]bool{} // the organizations that waited then and still wait
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "pop") {
				j, found := q.pop()
				if found != (len(waiting) > 0) || found && !waiting[j] {
					t.Fatalf("pop returned %v, %t with %d waiting jobs", j, found, len(waiting))
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
					t.Fatalf("size is %d after a drop, want %d", q.size, len(waiting))
				}
				continue
			}
			j := pictureJob{
				org:        rapid.SampledFrom(organizations).Draw(t, "org"),
				PictureKey: picturesstore.PictureKey{Spec: strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "spec"))},
			}
			room := waiting[j] || of[j.org] < 5 && len(waiting) < 12
			if q.push(j) != room {
				t.Fatalf("push of %v with %d waiting jobs returned %t, want %t", j, len(waiting), !room, room)
			}
			if room && !waiting[j] {
				waiting[j] = true
				of[j.org]++
			}
			if q.size != len(waiting) {
				t.Fatalf("size is %d, want %d", q.size, len(waiting))
			}
		}
	})
}
