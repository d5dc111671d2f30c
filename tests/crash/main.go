// Command crash kills, stops and confuses a real cluster while it publishes, and judges what the platforms saw by its own ledger.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are what a run is asked for.
type settings struct {
	Faults, Posts, Nodes int
	Seed                 int64
	Pace                 time.Duration // from one fault to the next, when the one is over by then
	Ahead                time.Duration // from the last booking to the first due time
	Keep                 bool          // the folder with the logs stays
	Mutant               string        // a known fault that is built in; "" = none
	Only                 []string      // kinds of faults, in turn; none = all of them, as the seed says
	Window               time.Duration // UNKNOWN_FOR and BACKOFF_FOR
}

func main() {
	var s settings
	flag.IntVar(&s.Faults, "faults", 200, "how many faults")
	flag.IntVar(&s.Posts, "posts", 20000, "how many posts")
	flag.IntVar(&s.Nodes, "nodes", 1, "how many nodes")
	flag.Int64Var(&s.Seed, "seed", 1, "of the schedule; the same seed makes the same one")
	flag.DurationVar(&s.Ahead, "ahead", 3*time.Minute, "how long before the first due time the posts are booked")
	flag.DurationVar(&s.Pace, "pace", 3500*time.Millisecond, "from one fault to the next")
	flag.BoolVar(&s.Keep, "keep", false, "keep the folder of the run")
	flag.StringVar(&s.Mutant, "mutant", "", "build this known fault in: "+mutantNames())
	flag.DurationVar(&s.Window, "window", 45*time.Second, "UNKNOWN_FOR and BACKOFF_FOR of the service")
	flag.Func("only", "kinds of faults, separated by commas, that take turns: "+strings.Join(kinds(), ", "), func(v string) error {
		s.Only = strings.Split(v, ",")
		for _, kind := range s.Only {
			if !slices.Contains(kinds(), kind) {
				return fmt.Errorf("there is no fault %q", kind)
			}
		}
		return nil
	})
	all := flag.Bool("mutants", false, "run every known fault and show that the checker tells it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *all {
		wrong, err := testOfTheTest(ctx, s, os.Stdout, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, "crash:", err)
		}
		if err != nil || wrong > 0 {
			os.Exit(1)
		}
		return
	}
	v, err := run(ctx, s, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
	if !v.enough() {
		fmt.Fprintf(os.Stderr, "crash: too little was met: %d stops inside a call, %v of the posts due while faults ran\n", v.StopsCommitting, v.DueDuringFaults)
	}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil || !v.clean() || !v.enough() {
		os.Exit(1)
	}
}
