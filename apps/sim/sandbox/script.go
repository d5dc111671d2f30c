package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"crier/platform/id"
)

type faultID = id.ID[scripted]

// The actions of scripted faults. README.md documents them.
const (
	actHold        = "hold"
	actHoldAnswer  = "hold_answer"
	actDrop        = "drop_answer"
	actErrorAfter  = "error_after"
	actErrorBefore = "error_before"
	actSlow        = "slow"
	actRateLimit   = "rate_limit"
	actExpireToken = "expire_token"
	actProcessing  = "processing"
	actLoseID      = "lose_id"
)

// match selects requests. An empty member matches every request.
type match struct {
	Method   string `json:"method,omitempty"`
	Path     string `json:"path,omitempty"`     // the path, or a prefix followed by *
	Nth      int    `json:"nth,omitempty"`      // the first matching request that gets the fault, counted from 1
	Contains string `json:"contains,omitempty"` // text that the JSON body must contain
}

// rule is a fault as defined by a client.
type rule struct {
	Account    string `json:"account,omitempty"`
	Match      match  `json:"match"`
	Action     string `json:"action"`
	Times      int    `json:"times"`
	Millis     int    `json:"ms,omitempty"`
	RetryAfter *int   `json:"retryAfter,omitempty"` // seconds
	Polls      int    `json:"polls,omitempty"`
	Then       string `json:"then,omitempty"` // the status after processing: "ready" or "failed"
}

// scripted is a fault with its counts, in the form that GET /_sim/faults returns.
type scripted struct {
	ID faultID `json:"id"`
	rule
	Seen     int           `json:"seen"`  // number of requests that matched
	Fired    int           `json:"fired"` // number of requests that got the fault
	Held     int           `json:"held"`  // number of requests waiting to be released
	released chan struct{} // closed to release the held requests
}

// script is the list of faults. It is kept only in memory and is lost when the process restarts.
type script struct {
	mu     sync.Mutex
	faults []*scripted
}

func (v *rule) check() error {
	bad := func(format string, args ...any) error { return refuse(422, "bad_fault", format, args...) }
	if v.Times == 0 {
		v.Times = 1
	}
	known := []string{
		actHold, actHoldAnswer, actDrop, actErrorAfter, actErrorBefore,
		actSlow, actRateLimit, actExpireToken, actProcessing, actLoseID,
	}
	switch {
	case !slices.Contains(known, v.Action):
		return bad("action must be one of %s.", strings.Join(known, ", "))
	case v.Times < 0 || v.Match.Nth < 0:
		return bad("times and match.nth must be 1 or more.")
	case v.Account != "" && !nameForm.MatchString(v.Account):
		return bad("account must be a valid account name.")
	case v.Match.Path != "" && !strings.HasPrefix(v.Match.Path, "/api/"):
		return bad("match.path must begin with /api/.")
	case (v.Action == actSlow) != (v.Millis != 0) || v.Millis < 0 || v.Millis > 3_600_000:
		return bad("ms (1 to 3600000) is only for slow, which requires it.")
	case v.RetryAfter != nil && (v.Action != actRateLimit || *v.RetryAfter < 0):
		return bad("retryAfter (seconds, 0 or more) is only for rate_limit.")
	case (v.Action == actProcessing) != (v.Polls != 0) || v.Polls < 0 || v.Polls > 1_000_000:
		return bad("polls (1 to 1000000) is only for processing, which requires it.")
	case v.Then != "" && (v.Action != actProcessing || v.Then != "ready" && v.Then != "failed"):
		return bad("then (ready or failed) is only for processing.")
	}
	v.restrictToPosts()
	return v.restrictToUploads()
}

// restrictToPosts makes a lose_id fault apply only to requests that create posts.
func (v *rule) restrictToPosts() {
	if v.Action == actLoseID {
		v.Match.Method, v.Match.Path = "POST", "/api/posts"
	}
}

// restrictToUploads makes a processing fault apply only to uploads, because the fault has no effect
// on other requests.
func (v *rule) restrictToUploads() error {
	if v.Action != actProcessing {
		return nil
	}
	m := &v.Match
	if m.Method != "" && m.Method != "POST" || m.Path != "" && m.Path != "/api/media" || m.Contains != "" {
		return refuse(422, "bad_fault", "processing matches only POST /api/media.")
	}
	m.Method, m.Path = "POST", "/api/media"
	return nil
}

func (v *rule) matches(c *call, who string) bool {
	prefix, wild := strings.CutSuffix(v.Match.Path, "*")
	path := c.r.URL.Path
	return (v.Account == "" || v.Account == who) &&
		(v.Match.Method == "" || v.Match.Method == c.r.Method) &&
		(v.Match.Path == "" || v.Match.Path == path || wild && strings.HasPrefix(path, prefix)) &&
		bytes.Contains(c.body, []byte(v.Match.Contains)) &&
		(v.Action != actExpireToken || c.account != nil || c.grant != nil)
}

// due increments the count of every fault that matches the request. It returns the first of these
// faults that applies, or nil.
func (s *script) due(c *call, who string) *scripted {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *scripted
	for _, f := range s.faults {
		if !f.matches(c, who) {
			continue
		}
		f.Seen++
		if first == nil && f.Seen >= f.Match.Nth && f.Fired < f.Times {
			f.Fired++
			first = f
		}
	}
	return first
}

// hold waits until the fault is released and returns true. If the client disconnects or the
// platform closes first, hold returns false.
func (s *script) hold(c *call, f *scripted, stop <-chan struct{}) bool {
	s.mu.Lock()
	f.Held++
	gate := f.released
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		f.Held--
		s.mu.Unlock()
	}()
	select {
	case <-gate:
		return c.r.Context().Err() == nil
	case <-c.r.Context().Done():
	case <-stop:
	}
	return false
}

// release releases the requests that a fault holds and returns their number. The caller must hold
// s.mu.
func (s *script) release(f *scripted) int {
	close(f.released)
	f.released = make(chan struct{})
	return f.Held
}

func (p *Platform) addFault(c *call) (answer, error) {
	f := &scripted{ID: id.New[scripted](), released: make(chan struct{})}
	err := decode(c.body, &f.rule,
		"account", "match", "method", "path", "nth", "contains", "action", "times", "ms", "retryAfter", "polls", "then")
	if err != nil {
		return answer{}, err
	}
	if err := f.check(); err != nil {
		return answer{}, err
	}
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	p.script.faults = append(p.script.faults, f)
	return answer{status: http.StatusCreated, body: map[string]faultID{"id": f.ID}}, nil
}

func (p *Platform) listFaults(*call) (answer, error) {
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	list := make([]scripted, 0, len(p.script.faults))
	for _, f := range p.script.faults {
		list = append(list, *f)
	}
	return answer{status: http.StatusOK, body: map[string]any{"faults": list}}, nil
}

func (p *Platform) releaseFault(c *call) (answer, error) {
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	for _, f := range p.script.faults {
		if f.ID.String() == c.r.PathValue("id") {
			return answer{status: http.StatusOK, body: map[string]int{"released": p.script.release(f)}}, nil
		}
	}
	return answer{}, refuse(http.StatusNotFound, "fault_not_found", "There is no such fault.")
}

// clearFaults removes all faults, or all faults of one account. It releases the requests that the
// removed faults hold, because nothing else could release them.
func (p *Platform) clearFaults(c *call) (answer, error) {
	q, err := query(c.r, "account")
	if err != nil {
		return answer{}, err
	}
	name := q.Get("account")
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	p.script.faults = slices.DeleteFunc(p.script.faults, func(f *scripted) bool {
		gone := name == "" || f.Account == name
		if gone {
			p.script.release(f)
		}
		return gone
	})
	return answer{status: http.StatusNoContent}, nil
}

// listAllPosts returns all published posts, oldest first, including posts by accounts that cannot
// be read back. Tests compare the result with what a connector reported.
func (p *Platform) listAllPosts(c *call) (answer, error) {
	q, err := query(c.r, "account")
	if err != nil {
		return answer{}, err
	}
	name := q.Get("account")
	found, recs, err := p.load(int(^uint(0)>>1), func(e *entry) bool { return name == "" || e.account.Name == name })
	if err != nil {
		return answer{}, err
	}
	views := []publishedView{}
	for i, r := range slices.Backward(recs) {
		v := r.Post
		views = append(views, publishedView{
			ID: v.ID, Account: found[i].account.Name, Text: v.Text, Media: orEmpty(v.Media), ReplyTo: orNull(v.ReplyTo),
			Key: v.Key, Marker: v.Marker, Topic: v.Topic, At: r.At,
		})
	}
	return answer{status: http.StatusOK, body: map[string]any{"posts": views}}, nil
}

type publishedView struct {
	ID      postID      `json:"id"`
	Account string      `json:"account"`
	Text    string      `json:"text"`
	Media   []postMedia `json:"media"`
	ReplyTo *postID     `json:"replyTo"`
	Key     string      `json:"key,omitempty"`
	Marker  string      `json:"marker,omitempty"`
	Topic   string      `json:"topic,omitempty"`
	At      time.Time   `json:"at"`
}

// accountName returns the name of the account that a request is for. A request without an access
// token can name the account in its body.
func (p *Platform) accountName(c *call) string {
	if c.account != nil {
		return c.account.Name
	}
	var in struct {
		Name         string `json:"name"`
		RefreshToken string `json:"refreshToken"`
	}
	if form, err := url.ParseQuery(string(c.body)); err == nil && c.r.URL.Path == "/api/oauth/token" {
		in.RefreshToken = form.Get("refresh_token")
	} else if json.Unmarshal(c.body, &in) != nil || in.RefreshToken == "" {
		return in.Name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state.refresh[hashToken(in.RefreshToken)]
	if s == nil {
		return ""
	}
	owner := s.Account
	if g := p.state.grants[s.Grant]; g != nil {
		owner = g.Page
	}
	if a := p.state.byID[owner]; a != nil {
		return a.Name
	}
	return ""
}

func retryAfter(f *scripted) string {
	if f.RetryAfter == nil {
		return ""
	}
	return strconv.Itoa(*f.RetryAfter)
}
