package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/alexedwards/argon2id"
)

const loginUsers = 8

// signingIn measures POST /auth/login beside the bare hash of the password. It also measures how
// its duration depends on what is wrong with a log-in.
func signingIn(ctx context.Context, r *rig) error {
	// Each hash allocates 19 MB, so the floor must collect garbage as often as the service does.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	return r.withPeople(ctx, loginUsers, func(w *crowd) error {
		for _, users := range []int{1, loginUsers} {
			if err := w.loginBesideHash(ctx, users); err != nil {
				return err
			}
		}
		return w.loginTimes(ctx)
	})
}

// loginBesideHash compares log-ins with the right password with bare hashes of the password. The
// service hashes on at most half of the cores, and so does the floor.
func (w *crowd) loginBesideHash(ctx context.Context, users int) error {
	slots := max(1, runtime.GOMAXPROCS(0)/2)
	all, err := alternate(users, time.Duration(w.opts.seconds)*time.Second/4, w.opts.rounds,
		side{
			name: "log-in", used: func() (cost, error) { return w.cost(ctx, w.node) },
			call: func(i int) error {
				_, err := w.login(ctx, w.emails[i%(people/2)], password, http.StatusCreated)
				return err
			},
		},
		w.bareHash(slots))
	if err != nil {
		return err
	}
	ours, floor := all[0].less(w.idle, w.idleSpan), all[1]
	params, _, _, err := argon2id.DecodeHash(w.hash)
	if err != nil {
		return err
	}
	line := m{
		"bench": "login", "clients": users, "unit": "log-ins/s", "calls": len(ours.took),
		"meanMs": ours.meanMs(), "floorMeanMs": floor.meanMs(), "meanRatio": ours.meanMs() / floor.meanMs(),
		"cpuMs": ours.cpuMs(), "floorCpuMs": floor.cpuMs(), "cpuRatio": ours.cpuMs() / floor.cpuMs(),
		"hash":   fmt.Sprintf("argon2id m=%d t=%d p=%d", params.Memory, params.Iterations, params.Parallelism),
		"atOnce": slots, "statementsPerRequest": ours.statements(),
	}
	ours.beside(floor, line)
	return w.emit(line)
}

// bareHash compares the password with its hash in this process, with at most slots hashes at once.
func (w *crowd) bareHash(slots int) side {
	free := make(chan struct{}, slots)
	return side{
		name: "hash", used: func() (cost, error) { return cost{crier: usageOf(os.Getpid()).cpu}, nil },
		call: func(int) error {
			free <- struct{}{}
			defer func() { <-free }()
			ok, err := argon2id.ComparePasswordAndHash(password, w.hash)
			if err == nil && !ok {
				err = fmt.Errorf("the password does not have the hash %s", w.hash)
			}
			return err
		},
	}
}

// attempt is a kind of log-in. A stranger can measure how long it takes.
type attempt struct {
	name  string
	email func(i int) string
	// password belongs to the request, and status to the response.
	password string
	status   int
	took     []time.Duration
}

// loginTimes compares the durations of log-ins with known and unknown addresses. It makes one of
// each kind in turn, in random order. The second kind with unknown addresses shows how much two
// equal kinds differ.
func (w *crowd) loginTimes(ctx context.Context) error {
	unknown := func(first int) func(int) string {
		return func(i int) string { return fmt.Sprintf("nobody%06d@bench.example", first+i%(people/2)) }
	}
	known := func(first int) func(int) string {
		return func(i int) string { return w.emails[first+i%(people/2)] }
	}
	const wrong = "another bench of seven words, no more"
	all := []*attempt{
		{name: "unknown address", email: unknown(0), password: wrong, status: http.StatusBadRequest},
		{name: "unknown address again", email: unknown(people), password: wrong, status: http.StatusBadRequest},
		{
			name: "known address, wrong password", email: known(people / 2), password: wrong,
			status: http.StatusBadRequest,
		},
		{name: "known address, right password", email: known(0), password: password, status: http.StatusCreated},
	}
	over := untilOver(time.Duration(w.opts.seconds) * time.Second * 5 / 4)
	for i := 0; !over(i); i++ {
		for _, k := range rand.Perm(len(all)) {
			a, start := all[k], now()
			if _, err := w.login(ctx, a.email(i), a.password, a.status); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			a.took = append(a.took, now().Sub(start))
		}
	}
	for _, a := range all {
		slices.Sort(a.took)
	}
	for _, a := range all {
		if err := w.emit(a.line(all[0].took)); err != nil {
			return err
		}
	}
	return nil
}

// line returns the quantiles, their ratios to log-ins with unknown addresses, and the share of
// pairs in which this kind is slower. A share of 0.5 means that one measurement says nothing about
// the address. slowerError is the standard error of the share if both durations have the same
// distribution.
func (a *attempt) line(unknown []time.Duration) m {
	n, k := float64(len(a.took)), float64(len(unknown))
	line := m{
		"bench": "login", "what": "time by address", "who": a.name, "calls": len(a.took),
		"slower": slowerShare(a.took, unknown), "slowerError": math.Sqrt((n + k + 1) / (12 * n * k)),
	}
	for _, q := range []int{10, 50, 90, 99} {
		ours, floor := quantile(a.took, float64(q)/100), quantile(unknown, float64(q)/100)
		line[fmt.Sprintf("p%dMs", q)], line[fmt.Sprintf("p%dRatio", q)] = ms(ours), ms(ours)/ms(floor)
	}
	return line
}

// slowerShare returns the share of all pairs in which the first duration is longer. Both lists must
// be sorted. Equal durations count half.
func slowerShare(a, b []time.Duration) float64 {
	var sum float64
	for _, d := range a {
		less, _ := slices.BinarySearch(b, d)
		most, _ := slices.BinarySearch(b, d+1)
		sum += float64(less+most) / 2
	}
	return sum / float64(len(a)) / float64(len(b))
}
