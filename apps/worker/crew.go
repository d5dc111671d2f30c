package worker

import "time"

const crewRest = 5 * time.Second // of a goroutine without work, before it ends

// crew does pieces of work at the same time, as many as come. Its goroutines stay a while for the next piece: their stacks have grown to what sending a post takes.
type crew struct {
	next chan func()
	over <-chan struct{} // nobody stays any more
}

func newCrew(over <-chan struct{}) crew { return crew{make(chan func()), over} }

func (c crew) do(work func()) {
	select {
	case c.next <- work: // only when one is waiting for it
	default:
		go c.stay(work)
	}
}

func (c crew) stay(work func()) {
	rest := time.NewTimer(crewRest)
	defer rest.Stop()
	for {
		work()
		rest.Reset(crewRest)
		select {
		case work = <-c.next:
		case <-rest.C:
			return
		case <-c.over:
			return
		}
	}
}
