// Command crash kills, stops and disturbs the processes of a real cluster while they publish, and
// compares what the platforms received with its own ledger.
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

// settings are the command line of a run.
type settings struct {
	Faults, Posts, Nodes int
	Seed                 int64
	// Pace is the time from the start of one fault to the start of the next. A fault that lasts
	// longer delays the next one.
	Pace time.Duration
	// Ahead is the time from the last booking to the first due time.
	Ahead time.Duration
	// Keep keeps the folder with the logs.
	Keep bool
	// Mutant is the name of the mutant that is built into the service, or "" for none.
	Mutant string
	// Only lists the kinds of faults to inject in turn. If it is empty, all kinds are injected in
	// the order that the seed gives.
	Only []string
	// Window is RECONCILE_WINDOW and RETRY_WINDOW of the service.
	Window time.Duration
}

func main() {
	var s settings
	flag.IntVar(&s.Faults, "faults", 200, "how many faults")
	flag.IntVar(&s.Posts, "posts", 20000, "how many posts")
	flag.IntVar(&s.Nodes, "nodes", 1, "how many nodes")
	flag.Int64Var(&s.Seed, "seed", 1, "seed of the schedule; the same seed makes the same schedule")
	flag.DurationVar(&s.Ahead, "ahead", 3*time.Minute, "time from the last booking to the first due time")
	flag.DurationVar(&s.Pace, "pace", 3500*time.Millisecond, "from one fault to the next")
	flag.BoolVar(&s.Keep, "keep", false, "keep the folder of the run")
	flag.StringVar(&s.Mutant, "mutant", "", "build this mutant into the service: "+mutantNames())
	flag.DurationVar(&s.Window, "window", 45*time.Second, "RECONCILE_WINDOW and RETRY_WINDOW of the service")
	flag.Func("only", "kinds of faults, separated by commas, that take turns: "+strings.Join(kinds(), ", "),
		func(v string) error {
			s.Only = strings.Split(v, ",")
			for _, kind := range s.Only {
				if !slices.Contains(kinds(), kind) {
					return fmt.Errorf("there is no fault %q", kind)
				}
			}
			return nil
		})
	all := flag.Bool("mutants", false, "run every mutant and check that the judge detects it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *all {
		wrong, err := runMutants(ctx, s, os.Stdout, os.Stderr)
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
		fmt.Fprintf(os.Stderr,
			"crash: too few faults took effect: %d stops inside a call, %v of the posts due while faults ran\n",
			v.StopsCommitting, v.DueDuringFaults)
	}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil || !v.clean() || !v.enough() {
		os.Exit(1)
	}
}
