package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"crier/tests/call"
)

// behindSession measures requests with a session. Its floor is requests with an API key. The
// handlers of both routes do nothing, so only the credentials differ: a session is looked up in the
// database for each request, and a key is cached for a few seconds.
func behindSession(ctx context.Context, r *rig) error {
	const most = 32
	return r.withPeople(ctx, most, func(w *crowd) error {
		sessions := make([]string, len(w.orgs))
		for i := range sessions {
			a, err := w.login(ctx, w.emails[i], password, http.StatusCreated)
			if err != nil {
				return err
			}
			sessions[i] = a.Cookie("auth")
			if sessions[i] == "" {
				return errors.New("a log-in set no cookie auth")
			}
		}
		for _, users := range []int{1, 8, most} {
			if err := w.sessionBesideKey(ctx, users, sessions); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *crowd) sessionBesideKey(ctx context.Context, users int, sessions []string) error {
	used := func() (cost, error) { return w.cost(ctx, w.node) }
	all, err := alternate(users, time.Duration(w.opts.seconds)*time.Second/3, shortTurns*w.opts.rounds,
		side{name: "session", used: used, call: func(i int) error {
			return w.get(ctx, "/user/subscription/tiers", "auth", sessions[i%len(sessions)])
		}},
		side{name: "key", used: used, call: func(i int) error {
			return w.get(ctx, "/public/v1/is-connected", "Authorization", w.orgs[i%len(w.orgs)].key)
		}})
	if err != nil {
		return err
	}
	ours, floor := all[0].less(w.idle, w.idleSpan), all[1].less(w.idle, w.idleSpan)
	line := m{
		"bench": "session", "clients": users, "unit": "requests/s", "calls": len(ours.took),
		"cpuMsPerRequest": ours.cpuMs(), "floorCpuMsPerRequest": floor.cpuMs(),
		"cpuRatio": ours.cpuMs() / floor.cpuMs(), "statementsPerRequest": ours.statements(),
		"floorStatementsPerRequest": floor.statements(),
	}
	ours.beside(floor, line)
	return w.emit(line)
}

// get calls a route of the service with one header.
func (w *crowd) get(ctx context.Context, path, header, value string) error {
	a, err := call.Do(ctx, w.http, http.MethodGet, "http://"+w.node.address+path, nil, header, value)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("GET %s: got %.300v, want status 200", path, a)
	}
	return err
}
