package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// client speaks to the service as programs do: a request without a clear answer is repeated, at another node.
type client struct {
	http   *http.Client
	nodes  []*node
	next   atomic.Int64
	ledger *ledger
}

func newClient(nodes []*node, l *ledger) *client {
	return &client{http: &http.Client{Timeout: 8 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second}}, nodes: nodes, ledger: l}
}

// call sends one request to the next node. Status 0 means that no whole answer came.
func (c *client) call(ctx context.Context, method, path, auth string, header map[string]string, body any) (status int, raw []byte, resp *http.Response) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, []byte(err.Error()), nil
		}
		in = bytes.NewReader(b)
	}
	at := c.nodes[int(c.next.Add(1))%len(c.nodes)].address
	req, err := http.NewRequestWithContext(ctx, method, "http://"+at+path, in)
	if err != nil {
		return 0, []byte(err.Error()), nil
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/public/") {
		req.Header.Set("Authorization", auth)
	} else if auth != "" {
		req.Header.Set("auth", auth)
	}
	for name, v := range header {
		req.Header.Set(name, v)
	}
	resp, err = c.http.Do(req)
	if err != nil {
		return 0, []byte(err.Error()), nil
	}
	raw, err = io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	if err != nil {
		return 0, []byte(err.Error()), nil
	}
	return resp.StatusCode, raw, resp
}

// certain tells whether an answer says what became of the request.
func certain(status int) bool {
	return status >= 200 && status < 500 && status != http.StatusTooManyRequests
}

const answerLimit = 10 * time.Minute

// book sends a request about a post until its answer is certain, and writes everything into the ledger.
func (c *client) book(ctx context.Context, ask line, method, path, auth string, body any) (status int, raw []byte, err error) {
	ask.Ask = true
	if err := c.ledger.write(ask); err != nil {
		return 0, nil, err
	}
	header := map[string]string{}
	if method == http.MethodPost {
		header["Idempotency-Key"] = ask.Key
	}
	wait := 100 * time.Millisecond
	for end := time.Now().Add(answerLimit); ; wait = min(2*wait, 3*time.Second) {
		status, raw, _ = c.call(ctx, method, path, auth, header, body)
		busy := status == http.StatusConflict && bytes.Contains(raw, []byte("Idempotency-Key"))
		got := line{Do: ask.Do, Post: ask.Post, Key: ask.Key, Status: status}
		if busy {
			got.Status = http.StatusTooManyRequests // it says nothing of the post
		}
		if ask.Do == doCreate && status == http.StatusCreated {
			var made []struct{ PostID string }
			if err := json.Unmarshal(raw, &made); err != nil || len(made) != 1 {
				return 0, nil, fmt.Errorf("the answer to a create is %s", raw)
			}
			got.ID = made[0].PostID
		} else if ask.Do == doPause && status == http.StatusOK {
			var held struct{ InFlight int }
			if err := json.Unmarshal(raw, &held); err != nil {
				return 0, nil, fmt.Errorf("the answer to a pause is %s", raw)
			}
			got.InFlight = held.InFlight
		} else if !certain(got.Status) || status > 299 {
			got.Note = string(raw)
		}
		if err := c.ledger.write(got); err != nil {
			return 0, nil, err
		}
		if certain(got.Status) || ctx.Err() != nil || time.Now().After(end) {
			return status, raw, ctx.Err()
		}
		pause(ctx, wait/2+rand.N(wait/2))
	}
}

var errGone = errors.New("there is no such thing")

// must repeats a call that prepares the run until it is answered well.
func (c *client) must(ctx context.Context, method, path, auth string, body, out any) (*http.Response, error) {
	for end := time.Now().Add(answerLimit); ; pause(ctx, 200*time.Millisecond) {
		status, raw, resp := c.call(ctx, method, path, auth, nil, body)
		if status >= 200 && status < 300 {
			if out != nil {
				return resp, json.Unmarshal(raw, out)
			}
			return resp, nil
		}
		if status == http.StatusNotFound {
			return nil, fmt.Errorf("%s %s: %w", method, path, errGone)
		}
		if ctx.Err() != nil || time.Now().After(end) || certain(status) {
			return nil, fmt.Errorf("%s %s: status %d: %s", method, path, status, raw)
		}
	}
}

// channel is one account on the platform, connected.
type channel struct{ org, id, account, grade, key, session string }

// account is one on a platform that is to be connected.
type account struct{ platform, grade string }

// connect signs in and connects a channel for each of the accounts.
func (c *client) connect(ctx context.Context, o organization, accounts []account) (out []channel, err error) {
	resp, err := c.must(ctx, http.MethodPost, "/auth/login", "", m{"provider": "LOCAL", "email": o.email, "password": password}, nil)
	if err != nil {
		return nil, err
	}
	session := ""
	for _, cookie := range resp.Cookies() {
		if cookie.Name == "auth" {
			session = cookie.Value
		}
	}
	for i, a := range accounts {
		var begun struct{ URL string }
		if _, err := c.must(ctx, http.MethodGet, "/integrations/social/sandbox?refresh=&externalUrl=&redirectUrl=&onboarding=", session, nil, &begun); err != nil {
			return nil, err
		}
		ch := channel{org: o.name, account: fmt.Sprintf("%s-%d-%s", o.name, i, strings.ToLower(a.grade)), grade: a.grade, key: o.key, session: session}
		fields, err := json.Marshal(m{"service": a.platform, "name": ch.account, "password": password, "grade": a.grade})
		if err != nil {
			return nil, err
		}
		var made struct{ ID string }
		if _, err := c.must(ctx, http.MethodPost, "/integrations/social-connect/sandbox", session, m{"state": begun.URL, "code": base64.StdEncoding.EncodeToString(fields), "timezone": "0"}, &made); err != nil {
			return nil, err
		}
		ch.id = made.ID
		out = append(out, ch)
	}
	return out, nil
}

type m = map[string]any
