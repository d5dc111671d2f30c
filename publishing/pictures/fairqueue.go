package pictures

import (
	"slices"

	picturesstore "crier/publishing/pictures/store"
	"crier/tenancy"
)

// pictureJob identifies a picture to be made. It contains no image data.
type pictureJob struct {
	org tenancy.OrgID
	picturesstore.PictureKey
}

// fairQueue is a bounded queue that serves organizations in turn, regardless of how many jobs each
// has. It contains each job at most once. It is not safe for concurrent use.
type fairQueue struct {
	each, all int // the maximum number of jobs per organization and in total

	order []tenancy.OrgID // the organizations with jobs, in the order of their turns
	jobs  map[tenancy.OrgID][]pictureJob
	size  int // the total number of jobs
}

// push appends a job to its organization's jobs. It returns false if the queue is full. A job that
// is already in the queue keeps its place.
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

// pop removes and returns the first job of the organization whose turn it is. It returns false if
// the queue is empty.
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

func (q *fairQueue) drop(org tenancy.OrgID) {
	q.size -= len(q.jobs[org])
	delete(q.jobs, org)
	q.order = slices.DeleteFunc(q.order, func(o tenancy.OrgID) bool { return o == org })
}
