package pictures

import (
	"time"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
)

// Stats is what an operator sees of the queue.
type Stats struct {
	Waiting  int           // jobs in memory
	Busy     time.Duration // since the picture that is made now was taken
	Searched time.Duration // since the database was last searched
	// Made, Failed and Returned count attempts that ended with a picture, for good without one, and for now without
	// one.
	Made, Failed, Returned int64
}

// Stats returns counts since Start.
func (p *Maker) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Waiting: p.urgent.size + p.ahead.size, Made: p.made.Load(), Failed: p.failed.Load(), Returned: p.returned.Load(),
	}
	if at := p.began.Load(); at != 0 {
		s.Busy = clock.Boot() - time.Duration(at)
	}
	if at := p.searched.Load(); at != 0 {
		s.Searched = clock.Boot() - time.Duration(at)
	}
	return s
}

// KeyOf returns the key of the picture that a connector gets in place of an image; needed is false when it takes the
// image as it is.
func KeyOf(c connector.Connector, id publishing.MediaID, m connector.Media) (key publishingstore.PictureKey, needed bool) {
	deriver, ok := c.(connector.Deriver)
	if !ok {
		return key, false
	}
	spec, needed := deriver.Derived(m)
	return publishingstore.PictureKey{Media: id, Spec: spec.String()}, needed
}
