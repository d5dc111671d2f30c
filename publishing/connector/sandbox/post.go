package sandbox

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"crier/platform/failpoint"
	"crier/publishing"
	"crier/publishing/connector"
)

const (
	poll   = 2 * time.Second // while the platform processes a medium
	page   = 100             // the most posts that the platform lists at once
	pages  = 20              // that are read back; further back nobody looks
	margin = time.Minute     // how far the platform's clock may be behind ours
)

// handle is what Prepare has done so far.
type handle struct {
	Media []uploaded `json:"media"`
}

// uploaded is one medium on the platform, in the order of the item's.
type uploaded struct {
	ID    string `json:"id"`
	Ready bool   `json:"ready"`
}

func readHandle(raw json.RawMessage) (handle, error) {
	var h handle
	if len(raw) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, &connector.Error{Kind: connector.KindOperator, Public: "The stored progress of this post cannot be read.", Err: err}
	}
	return h, nil
}

// Prepare uploads one medium a call, then asks until all of them are processed.
func (c *Connector) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	failpoint.Panic(failpoint.Preparing, item.Text)
	cl, _, err := c.open(s)
	if err != nil {
		return connector.Step{}, err
	}
	h, err := readHandle(item.Handle)
	if err != nil {
		return connector.Step{}, err
	}
	var wait time.Duration
	if done := len(h.Media); done < len(item.Media) {
		up, err := cl.upload(ctx, item.Media[done])
		if err != nil {
			return connector.Step{}, err
		}
		h.Media = append(h.Media, up)
	} else if i := slices.IndexFunc(h.Media, func(u uploaded) bool { return !u.Ready }); i >= 0 {
		if h.Media[i].Ready, err = cl.processed(ctx, h.Media[i].ID); err != nil {
			return connector.Step{}, err
		}
		if !h.Media[i].Ready {
			wait = poll
		}
	}
	ready := len(h.Media) >= len(item.Media) && !slices.ContainsFunc(h.Media, func(u uploaded) bool { return !u.Ready })
	raw, err := json.Marshal(h)
	return connector.Step{Ready: ready, Wait: wait, Handle: raw}, err
}

type mediaView struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (cl client) upload(ctx context.Context, m connector.Media) (uploaded, error) {
	file, err := m.Open()
	if err != nil {
		return uploaded{}, &connector.Error{Kind: connector.KindTransient, Public: "A file of this post could not be read.", Err: err}
	}
	defer func() { _ = file.Close() }() // only read
	req, err := cl.request(ctx, http.MethodPost, "/api/media?alt="+url.QueryEscape(m.Alt), file)
	if err != nil {
		return uploaded{}, err
	}
	req.ContentLength = m.Size
	req.Header.Set("Content-Type", m.ContentType)
	var view mediaView
	if err := cl.do(req, &view); err != nil {
		return uploaded{}, err
	}
	return uploaded{view.ID, view.Status == "ready"}, nil
}

// processed asks for the state of a medium.
func (cl client) processed(ctx context.Context, id string) (bool, error) {
	var view mediaView
	if err := cl.get(ctx, "/api/media/"+url.PathEscape(id), &view); err != nil {
		return false, err
	}
	if view.Status == "failed" {
		return false, &connector.Error{Kind: connector.KindContent, Code: "media_failed", Public: "The sandbox could not process a file of this post."}
	}
	return view.Status == "ready", nil
}

// post is a post as the platform takes and lists it.
type post struct {
	Text    string       `json:"text"`
	Media   []attachment `json:"media,omitempty"`
	ReplyTo string       `json:"replyTo,omitempty"`
	Key     string       `json:"key,omitempty"`
	Marker  string       `json:"marker,omitempty"`
}

type attachment struct {
	ID  string `json:"id"`
	Alt string `json:"alt"`
}

func write(grade publishing.Grade, item connector.Item, h handle) post {
	p := post{Text: item.Text}
	for i, up := range h.Media {
		p.Media = append(p.Media, attachment{up.ID, item.Media[i].Alt})
	}
	if item.Parent != nil {
		p.ReplyTo = item.Parent.ID
	}
	switch grade {
	case publishing.GradeIdempotent:
		p.Key = item.Publication.String()
	case publishing.GradeMarked:
		p.Marker = item.Publication.String()
	}
	return p
}

// made is a post that exists.
type made struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	CreatedAt time.Time `json:"createdAt"`
}

// Commit publishes. On grade A a repeat under the same publication answers the first post.
func (c *Connector) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	cl, _, err := c.open(s)
	if err != nil {
		return connector.Ref{}, err
	}
	h, err := readHandle(item.Handle)
	if err != nil {
		return connector.Ref{}, err
	}
	if len(h.Media) != len(item.Media) {
		return connector.Ref{}, &connector.Error{Kind: connector.KindTransient, Public: "The files of this post are not uploaded yet."}
	}
	req, err := cl.postRequest(ctx, "/api/posts", write(s.Account.Grade, item, h))
	if err != nil {
		return connector.Ref{}, err
	}
	var m made
	if err := cl.commit(req, &m); err != nil {
		return connector.Ref{}, err
	}
	failpoint.Panic(failpoint.Committed, item.Text)
	if m.ID == "" {
		return connector.Ref{}, &connector.Error{Kind: connector.KindUnknown, Public: "The sandbox did not name the post that it made."}
	}
	return connector.Ref{ID: m.ID, URL: m.URL}, nil
}

type listed struct {
	made
	post
}

// Reconcile reads back what was published since the call was about to be made.
func (c *Connector) Reconcile(ctx context.Context, s *connector.Session, item connector.Item) (connector.Verdict, error) {
	if !s.Account.Grade.Askable() {
		return connector.Verdict{Outcome: connector.CannotTell}, nil
	}
	cl, _, err := c.open(s)
	if err != nil {
		return connector.Verdict{}, err
	}
	h, err := readHandle(item.Handle)
	if err != nil {
		return connector.Verdict{}, err
	}
	want := write(s.Account.Grade, item, h)
	q := url.Values{"account": {"me"}, "limit": {strconv.Itoa(page)}, "since": {item.Committing.Add(-margin).Format(time.RFC3339Nano)}}
	for range pages {
		var list struct {
			Posts []listed `json:"posts"`
		}
		if err := cl.get(ctx, "/api/posts?"+q.Encode(), &list); err != nil {
			return connector.Verdict{}, err
		}
		for _, p := range list.Posts {
			if p.is(want) {
				return connector.Verdict{Outcome: connector.Published, Ref: connector.Ref{ID: p.made.ID, URL: p.URL}}, nil
			}
		}
		if len(list.Posts) < page {
			return connector.Verdict{Outcome: connector.NotPublished}, nil
		}
		q.Set("before", list.Posts[page-1].made.ID)
	}
	return connector.Verdict{Outcome: connector.CannotTell}, nil
}

// is compares what the publication is known by: its key on grade A, its marker elsewhere.
func (p listed) is(want post) bool { return p.Key == want.Key && p.Marker == want.Marker }
