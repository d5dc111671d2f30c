package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"crier/tests/call"
)

// agents measures calls of MCP tools. Their floor is the REST call with the same access token and
// the same use case. It then measures how many access tokens the service issues and introspects.
func agents(ctx context.Context, r *rig) error {
	const most = 8
	return r.withPeople(ctx, most, func(w *crowd) error {
		all := make([]*agent, most)
		for i := range all {
			var err error
			if all[i], err = w.newAgent(ctx, i); err != nil {
				return err
			}
		}
		for _, users := range []int{1, most} {
			for _, t := range []twin{
				{tool: "service_list_channels", arguments: m{}, path: "/public/v1/integrations"},
				{tool: "service_list_groups", arguments: m{}, path: "/public/v1/groups"},
			} {
				if err := w.toolBesideREST(ctx, users, all, t); err != nil {
					return err
				}
			}
		}
		return w.tokensBesideIntrospections(ctx, all)
	})
}

// twin is a tool and the REST route that calls the same use case.
type twin struct {
	tool      string
	arguments m
	path      string
}

// agent is a client with its tokens.
type agent struct {
	client, access string

	mu      sync.Mutex // protects refresh, because each refresh replaces it
	refresh string
}

const agentRedirect = "http://127.0.0.1:1/callback"

// newAgent registers a client and lets the i-th owner approve it.
func (w *crowd) newAgent(ctx context.Context, i int) (*agent, error) {
	a, err := w.login(ctx, w.emails[i], password, http.StatusCreated)
	if err != nil {
		return nil, err
	}
	base := "http://" + w.node.address
	var registered struct {
		ClientID string `json:"client_id"`
	}
	err = w.into(ctx, &registered, http.StatusCreated, base+"/oauth/register", m{
		"client_name": fmt.Sprint("Bench ", i), "redirect_uris": []string{agentRedirect},
		"token_endpoint_auth_method": "none",
	})
	if err != nil {
		return nil, err
	}
	verifier := strings.Repeat("v", 64)
	sum := sha256.Sum256([]byte(verifier))
	var approved struct{ Redirect string }
	err = w.into(ctx, &approved, http.StatusCreated, base+"/oauth/authorize", m{
		"client_id": registered.ClientID, "action": "approve", "redirect_uri": agentRedirect, "state": "s",
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
		"scope": "mcp:read mcp:write",
	}, "auth", a.Cookie("auth"))
	if err != nil {
		return nil, err
	}
	back, err := url.Parse(approved.Redirect)
	if err != nil {
		return nil, err
	}
	out := &agent{client: registered.ClientID}
	return out, w.token(ctx, out, m{
		"grant_type": "authorization_code", "code": back.Query().Get("code"), "client_id": out.client,
		"redirect_uri": agentRedirect, "code_verifier": verifier,
	})
}

// token stores the tokens that the token endpoint returns.
func (w *crowd) token(ctx context.Context, a *agent, body m) error {
	var issued struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	err := w.into(ctx, &issued, http.StatusOK, "http://"+w.node.address+"/oauth/token", body)
	a.access, a.refresh = issued.Access, issued.Refresh
	return err
}

// into sends a JSON body from another network and decodes the response.
func (w *crowd) into(ctx context.Context, v any, want int, address string, body m, headers ...string) error {
	a, err := call.Do(ctx, w.http, http.MethodPost, address, body, append(w.from(), headers...)...)
	if err != nil {
		return err
	}
	if a.Status != want {
		return fmt.Errorf("POST %s: got %.300v, want status %d", address, a, want)
	}
	return a.Into(v)
}

func (w *crowd) toolBesideREST(ctx context.Context, users int, all []*agent, t twin) error {
	used := func() (cost, error) { return w.cost(ctx, w.node) }
	body := m{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": m{"name": t.tool, "arguments": t.arguments}}
	sides, err := alternate(users, time.Duration(w.opts.seconds)*time.Second/3, shortTurns*w.opts.rounds,
		side{name: t.tool, used: used, call: func(i int) error {
			a, err := call.Do(ctx, w.http, http.MethodPost, "http://"+w.node.address+"/mcp", body,
				"Authorization", "Bearer "+all[i%len(all)].access, "MCP-Protocol-Version", "2025-06-18",
				"Accept", "application/json, text/event-stream")
			if err == nil && (a.Status != http.StatusOK || strings.Contains(a.Body, `"isError":true`)) {
				err = fmt.Errorf("%s: got %.300v, want a result", t.tool, a)
			}
			return err
		}},
		side{name: t.path, used: used, call: func(i int) error {
			return w.get(ctx, t.path, "Authorization", all[i%len(all)].access)
		}})
	if err != nil {
		return err
	}
	ours, floor := sides[0].less(w.idle, w.idleSpan), sides[1].less(w.idle, w.idleSpan)
	line := m{
		"bench": "agents", "tool": t.tool, "clients": users, "unit": "requests/s", "calls": len(ours.took),
		"cpuMsPerRequest": ours.cpuMs(), "floorCpuMsPerRequest": floor.cpuMs(),
		"cpuRatio":             ours.cpuMs() / floor.cpuMs(),
		"statementsPerRequest": ours.statements(), "floorStatementsPerRequest": floor.statements(),
	}
	ours.beside(floor, line)
	return w.emit(line)
}

// tokensBesideIntrospections alternates refreshes and introspections, which authenticate with an
// API key.
func (w *crowd) tokensBesideIntrospections(ctx context.Context, all []*agent) error {
	used := func() (cost, error) { return w.cost(ctx, w.node) }
	address := "http://" + w.node.address + "/oauth/introspect"
	sides, err := alternate(len(all), time.Duration(w.opts.seconds)*time.Second/3, shortTurns*w.opts.rounds,
		side{name: "refresh", used: used, call: func(i int) error {
			a := all[i%len(all)]
			a.mu.Lock()
			defer a.mu.Unlock()
			return w.token(ctx, a, m{"grant_type": "refresh_token", "refresh_token": a.refresh, "client_id": a.client})
		}},
		side{name: "introspect", used: used, call: func(i int) error {
			a := all[i%len(all)]
			a.mu.Lock()
			access := a.access
			a.mu.Unlock()
			var described struct{ Active bool }
			err := w.into(ctx, &described, http.StatusOK, address, m{"token": access},
				"Authorization", w.orgs[i%len(all)].key)
			if err == nil && !described.Active {
				err = fmt.Errorf("introspection of a fresh token: got inactive, want active")
			}
			return err
		}})
	if err != nil {
		return err
	}
	refresh, introspect := sides[0].less(w.idle, w.idleSpan), sides[1].less(w.idle, w.idleSpan)
	line := m{
		"bench": "agents", "unit": "tokens/s", "clients": len(all), "introspections": introspect.rate(),
		"statementsPerToken": refresh.statements(), "statementsPerIntrospection": introspect.statements(),
		"cpuMsPerToken": refresh.cpuMs(), "cpuMsPerIntrospection": introspect.cpuMs(),
	}
	refresh.beside(introspect, line)
	return w.emit(line)
}
