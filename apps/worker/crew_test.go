package worker

import (
	"sync"
	"testing"
)

// TestACrewDoesEveryPieceOnce with all of a round at the same time: nothing waits for another piece to end, before and after the crew was sent home.
func TestACrewDoesEveryPieceOnce(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	c := newCrew(over)
	for round := range 20 {
		if round == 10 {
			close(over)
		}
		const pieces = 100
		var here, done sync.WaitGroup
		here.Add(pieces)
		times := make([]int, pieces)
		for i := range pieces {
			done.Add(1)
			c.do(func() {
				defer done.Done()
				times[i]++
				here.Done()
				here.Wait()
			})
		}
		done.Wait()
		for i, n := range times {
			if n != 1 {
				t.Fatalf("piece %d was done %d times", i, n)
			}
		}
	}
}
