package pictures

import (
	"time"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/connector"
	picturesstore "crier/publishing/pictures/store"
)

// Stats holds a Maker's statistics for metrics and health checks.
type Stats struct {
	// Waiting is the number of jobs in memory.
	Waiting int
	// Busy is how long the current picture has been in progress, or 0 if there is none.
	Busy time.Duration
	// Searched is the time since the last successful search of the database, or 0 before the first
	// one.
	Searched time.Duration
	// Made, Failed and Returned count attempts since Start: attempts that produced a picture, that
	// failed permanently, and that failed and will be retried.
	Made, Failed, Returned int64
}

// Stats returns the current statistics. Unlike Add and Await, it does not work on a nil Maker.
func (p *Maker) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Waiting: p.urgent.size + p.ahead.size,
		Busy:    p.making.Busy(),
		Made:    p.made.Load(), Failed: p.failed.Load(), Returned: p.returned.Load(),
	}
	if at := p.searched.Load(); at != 0 {
		s.Searched = clock.Boot() - time.Duration(at)
	}
	return s
}

// KeyOf returns the key of the picture that a connector needs in place of an image. It returns
// false if the connector accepts the image itself.
func KeyOf(
	c connector.Connector, id publishing.MediaID, m connector.Media,
) (key picturesstore.PictureKey, needed bool) {
	deriver, ok := c.(connector.Deriver)
	if !ok {
		return key, false
	}
	spec, needed := deriver.Derived(m)
	return picturesstore.PictureKey{Media: id, Spec: spec.String()}, needed
}
