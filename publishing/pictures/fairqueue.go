package pictures

import (
	"slices"

	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// pictureJob names a picture to be made. It holds no bytes.
type pictureJob struct {
	org tenancy.OrgID
	publishingstore.PictureKey
}

// fairQueue is a bounded queue in which organizations take turns, however much each of them has. It holds a job once.
// It is not safe for concurrent use.
type fairQueue struct {
	each, all int // the most jobs of an organization, and of all together

	order []tenancy.OrgID // those with jobs; the first is next
	jobs  map[tenancy.OrgID][]pictureJob
	size  int
}

// push adds a job at the end of its organization's; false when there is no room. A job that waits already stays where
// it is.
func (q *fairQueue) push(j pictureJob) bool {
	own := q.jobs[j.org]
	switch {
	case slices.Contains(own, j):
		return true
	case len(own) >= q.each, q.size >= q.all:
		return false
	}
	if len(own) == 0 {
		q.order = append(q.order, j.org)
	}
	if q.jobs == nil {
		q.jobs = map[tenancy.OrgID][]pictureJob{}
	}
	q.jobs[j.org] = append(own, j)
	q.size++
	return true
}

// pop takes the first job of the organization whose turn it is; false when there is none.
func (q *fairQueue) pop() (pictureJob, bool) {
	if len(q.order) == 0 {
		return pictureJob{}, false
	}
	org := q.order[0]
	own := q.jobs[org]
	q.order = append(q.order[:0:0], q.order[1:]...)
	q.size--
	if len(own) == 1 {
		delete(q.jobs, org)
		return own[0], true
	}
	q.jobs[org] = own[1:]
	q.order = append(q.order, org)
	return own[0], true
}

// drop removes all jobs of an organization.
func (q *fairQueue) drop(org tenancy.OrgID) {
	q.size -= len(q.jobs[org])
	delete(q.jobs, org)
	q.order = slices.DeleteFunc(q.order, func(o tenancy.OrgID) bool { return o == org })
}
