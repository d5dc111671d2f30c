// Command bench measures the built service in a separate process, compares it with a floor measured
// in the same run, and prints one JSON object per line.
//
//	go run ./tests/bench [-posts n] [-orgs n] [-rounds n] [-seconds n] [-ahead d] [-rows n]
//		[-year n] [name ...]
//
// The statements of all roles of the service are counted. Processor time is the time of the service
// and Postgres, less the time of an idle span. It does not include the platform and the clients,
// but they share the machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// options scale the benchmarks.
type options struct {
	posts, organizations int
	rounds               int
	seconds              int
	rows                 int
	// year is the number of posts in a year.
	year int
	// ahead is the minimum time from the booking of a post through the API to its due time.
	ahead time.Duration
	// settings are additional variables for the service, as NAME=value.
	settings []string
	// profile is the file for a CPU profile, or "" for none.
	profile string
}

// bench is a benchmark with its name on the command line.
type bench struct {
	name string
	run  func(context.Context, *rig) error
}

func benches() []bench {
	return []bench{
		{name: "due_burst", run: dueBurst},
		{name: "peer_burst", run: peerBurst},
		{name: "tls", run: overTLS},
		{name: "fairness", run: fairness},
		{name: "hanging", run: hanging},
		{name: "steady", run: steady},
		{name: "create", run: creating},
		{name: "read", run: reading},
		{name: "list", run: listing},
		{name: "find-slot", run: findingSlots},
		{name: "admit", run: admitting},
		{name: "idle", run: idle},
		{name: "failover", run: failover},
		{name: "growth", run: growth},
		{name: "pictures", run: pictures},
		{name: "retention", run: retention},
		{name: "login", run: signingIn},
		{name: "session", run: behindSession},
		{name: "upload", run: uploading},
		{name: "wall", run: walled},
		{name: "webhook", run: webhooks},
		{name: "snapshots", run: snapshots},
		{name: "agents", run: agents},
	}
}

func main() {
	var opts options
	flag.IntVar(&opts.posts, "posts", 100_000, "posts of due_burst; the sizes of fairness scale with it")
	flag.IntVar(&opts.organizations, "orgs", 10_000, "organizations of due_burst; idle has ten times as many")
	flag.IntVar(&opts.rounds, "rounds", 3,
		"bursts of due_burst, and turns of list, login, session, upload and wall, each beside its floor; "+
			"their means are compared")
	flag.IntVar(&opts.rows, "rows", 1_000_000, "most rows in the tables of growth and wall")
	flag.IntVar(&opts.year, "year", 100_000, "posts of a year of retention")
	flag.IntVar(&opts.seconds, "seconds", 60, "length of what is measured over time")
	flag.DurationVar(&opts.ahead, "ahead", 3*time.Minute,
		"least time from the booking of a post by the API to its due time")
	flag.Func("set", "NAME=value for the service; may be repeated", func(v string) error {
		opts.settings = append(opts.settings, v)
		return nil
	})
	flag.StringVar(&opts.profile, "profile", "", "file for a CPU profile of the service from the due time of a burst")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	debug.SetGCPercent(800) // leave more processor time to the service
	if err := run(ctx, opts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options, names []string) (err error) {
	var known []string
	for _, b := range benches() {
		known = append(known, b.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no benchmark %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	r, err := newRig(ctx, opts)
	defer func() {
		if r != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if err != nil {
		return err
	}
	for _, b := range benches() {
		if len(names) > 0 && !slices.Contains(names, b.name) {
			continue
		}
		if err := b.run(ctx, r); err != nil {
			return fmt.Errorf("%s: %w\n%s", b.name, err, r.logTail())
		}
	}
	return nil
}

// emit prints a benchmark's line, with numbers rounded to four digits.
func (r *rig) emit(line map[string]any) error {
	for k, v := range line {
		if f, ok := v.(float64); ok {
			line[k] = json.Number(fmt.Sprintf("%.4g", f))
		}
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}
