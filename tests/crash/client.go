package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"crier/tests/call"
)

// client calls the service as a careful API client does: it repeats a request without a clear
// response at another node.
type client struct {
	http   *http.Client
	nodes  []*node
	next   atomic.Int64
	ledger *ledger
}

func newClient(nodes []*node, l *ledger) *client {
	return &client{http: &http.Client{Timeout: 8 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second}}, nodes: nodes, ledger: l}
}

// call sends one request to the next node. Status 0 means that no complete response arrived; Body
// is then the error.
func (c *client) call(ctx context.Context, method, path, auth string, body any, headers ...string) call.Answer {
	credential := []string{"auth", auth}
	if strings.HasPrefix(path, "/public/") {
		credential = []string{"Authorization", auth}
	}
	at := c.nodes[int(c.next.Add(1))%len(c.nodes)].address
	a, err := call.Do(ctx, c.http, method, "http://"+at+path, body, append(credential, headers...)...)
	if err != nil {
		return call.Answer{Body: err.Error()}
	}
	return a
}

// certain reports whether a status tells for certain whether the request was carried out.
func certain(status int) bool {
	return status >= 200 && status < 500 && status != http.StatusTooManyRequests
}

const answerLimit = 10 * time.Minute

// book sends a request about a post until the response is certain. It writes each request and
// response to the ledger and returns the last response as recorded.
func (c *client) book(ctx context.Context, ask line, method, path, auth string, body any) (got line, err error) {
	ask.Ask = true
	if err := c.ledger.write(ask); err != nil {
		return got, err
	}
	key := ""
	if method == http.MethodPost {
		key = ask.Key
	}
	wait := 100 * time.Millisecond
	for end := time.Now().Add(answerLimit); ; wait = min(2*wait, 3*time.Second) {
		a := c.call(ctx, method, path, auth, body, "Idempotency-Key", key)
		got = line{Do: ask.Do, Post: ask.Post, Key: ask.Key, Status: a.Status}
		if a.Status == http.StatusConflict && strings.Contains(a.Body, "Idempotency-Key") {
			// Only the request is refused, so the outcome is open.
			got.Status = http.StatusTooManyRequests
		}
		if ask.Do == doCreate && a.Status == http.StatusCreated {
			var made []struct{ PostID string }
			if err := a.Into(&made); err != nil || len(made) != 1 {
				return got, fmt.Errorf("the answer to a create is %v", a)
			}
			got.ID = made[0].PostID
		} else if ask.Do == doPause && a.Status == http.StatusOK {
			var held struct{ InFlight int }
			if err := a.Into(&held); err != nil {
				return got, fmt.Errorf("the answer to a pause is %v", a)
			}
			got.InFlight = held.InFlight
		} else if !certain(got.Status) || a.Status > 299 {
			got.Note = a.Body
		}
		if err := c.ledger.write(got); err != nil {
			return got, err
		}
		if certain(got.Status) || ctx.Err() != nil || time.Now().After(end) {
			return got, ctx.Err()
		}
		pause(ctx, wait/2+rand.N(wait/2))
	}
}

var errGone = errors.New("there is no such thing")

// retryUntilOK repeats a setup call until it succeeds. The error is errGone if the response is 404.
func (c *client) retryUntilOK(ctx context.Context, method, path, auth string, body, out any) (call.Answer, error) {
	for end := time.Now().Add(answerLimit); ; pause(ctx, 200*time.Millisecond) {
		a := c.call(ctx, method, path, auth, body)
		switch {
		case a.Status >= 200 && a.Status < 300:
			return a, a.Into(out)
		case a.Status == http.StatusNotFound:
			return a, fmt.Errorf("%s %s: %w", method, path, errGone)
		case ctx.Err() != nil || time.Now().After(end) || certain(a.Status):
			return a, fmt.Errorf("%s %s answers %v", method, path, a)
		}
	}
}

// channel is a connected account.
type channel struct{ org, id, account, grade, key, session string }

// account is an account on a platform, to be connected.
type account struct{ platform, grade string }

// connect signs in and connects one channel per account.
func (c *client) connect(ctx context.Context, o organization, accounts []account) (out []channel, err error) {
	in, err := c.retryUntilOK(ctx, http.MethodPost, "/auth/login", "",
		m{"provider": "LOCAL", "email": o.email, "password": password}, nil)
	if err != nil {
		return nil, err
	}
	session := in.Cookie("auth")
	for i, a := range accounts {
		var begun struct{ URL string }
		if _, err := c.retryUntilOK(ctx, http.MethodGet,
			"/integrations/social/sandbox?refresh=&externalUrl=&redirectUrl=&onboarding=", session, nil,
			&begun); err != nil {
			return nil, err
		}
		ch := channel{org: o.name, account: fmt.Sprintf("%s-%d-%s", o.name, i, strings.ToLower(a.grade)),
			grade: a.grade, key: o.key, session: session}
		fields, err := json.Marshal(m{"service": a.platform, "name": ch.account, "password": password,
			"grade": a.grade})
		if err != nil {
			return nil, err
		}
		var made struct{ ID string }
		if _, err := c.retryUntilOK(ctx, http.MethodPost, "/integrations/social-connect/sandbox", session,
			m{"state": begun.URL, "code": base64.StdEncoding.EncodeToString(fields), "timezone": "0"},
			&made); err != nil {
			return nil, err
		}
		ch.id = made.ID
		out = append(out, ch)
	}
	return out, nil
}

type m = map[string]any
