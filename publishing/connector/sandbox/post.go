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
	poll     = 2 * time.Second // polling interval while the platform processes a medium
	pageSize = 100             // posts per list, at most
	maxPages = 20              // lists that Reconcile reads, at most
	margin   = time.Minute     // how far the platform's clock may lag behind ours
)

// handle is the content of Item.Handle.
type handle struct {
	Media []uploaded `json:"media"`
}

// uploaded is an uploaded medium. Media are uploaded in the order in which the item lists them.
type uploaded struct {
	ID    string `json:"id"`
	Ready bool   `json:"ready"`
}

func parseHandle(raw json.RawMessage) (handle, error) {
	var h handle
	if len(raw) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, &connector.Error{
			Kind: connector.KindOperator, Public: "The stored progress of this post cannot be read.", Err: err,
		}
	}
	return h, nil
}

// Prepare uploads one medium per call. Once all media are uploaded, each call polls one medium that
// is still being processed. Prepare returns any request error, and KindOperator if the Handle
// cannot be decoded.
func (c *Connector) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	failpoint.Panic(failpoint.Preparing, item.Text)
	cl, _, err := c.open(s)
	if err != nil {
		return connector.Step{}, err
	}
	h, err := parseHandle(item.Handle)
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
		h.Media[i].Ready, err = cl.processed(ctx, h.Media[i].ID)
		if err != nil {
			return connector.Step{}, err
		}
		if !h.Media[i].Ready {
			wait = poll
		}
	}
	ready := len(h.Media) >= len(item.Media) &&
		!slices.ContainsFunc(h.Media, func(u uploaded) bool { return !u.Ready })
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
		return uploaded{}, &connector.Error{
			Kind: connector.KindTransient, Public: "A file of this post could not be read.", Err: err,
		}
	}
	defer func() { _ = file.Close() }() // opened for reading only
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
	return uploaded{ID: view.ID, Ready: view.Status == "ready"}, nil
}

// processed reports whether the platform has processed a medium. It returns KindContent if
// processing failed.
func (cl client) processed(ctx context.Context, id string) (bool, error) {
	var view mediaView
	if err := cl.get(ctx, "/api/media/"+url.PathEscape(id), &view); err != nil {
		return false, err
	}
	if view.Status == "failed" {
		return false, &connector.Error{
			Kind: connector.KindContent, Code: "media_failed",
			Public: "The sandbox could not process a file of this post.",
		}
	}
	return view.Status == "ready", nil
}

// post is a post in the format of the platform's requests and lists.
type post struct {
	Text    string       `json:"text"`
	Media   []attachment `json:"media,omitempty"`
	ReplyTo string       `json:"replyTo,omitempty"`
	Key     string       `json:"key,omitempty"`
	Marker  string       `json:"marker,omitempty"`
	Topic   string       `json:"topic,omitempty"`
}

type attachment struct {
	ID  string `json:"id"`
	Alt string `json:"alt"`
}

// encode returns the post for an item. For GradeIdempotent, its key is the publication ID. For
// GradeMarked, its marker is the publication ID.
func encode(grade publishing.Grade, item connector.Item, h handle) post {
	p := post{Text: item.Text, Topic: topicOf(item.Settings)}
	for i, up := range h.Media {
		p.Media = append(p.Media, attachment{ID: up.ID, Alt: item.Media[i].Alt})
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

// topicOf returns the topic in a post's settings, or "" if there is none.
func topicOf(settings json.RawMessage) string {
	var in struct {
		Topic string `json:"topic"`
	}
	if len(settings) == 0 || json.Unmarshal(settings, &in) != nil {
		// Validate has rejected any other type
		return ""
	}
	return in.Topic
}

// created holds the fields that the platform adds to a post.
type created struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	CreatedAt time.Time `json:"createdAt"`
	// Status is "accepted" if the platform has published the post without returning its ID.
	Status string `json:"status"`
}

// Commit publishes the item. For GradeIdempotent, committing the same publication again returns the
// first post. If the sandbox accepts the post without returning its ID, Commit returns an empty
// Ref.
//
// Commit returns KindTransient if a medium has not been uploaded yet, and KindUnknown if the
// sandbox did not respond with a post.
func (c *Connector) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	cl, _, err := c.open(s)
	if err != nil {
		return connector.Ref{}, err
	}
	h, err := parseHandle(item.Handle)
	if err != nil {
		return connector.Ref{}, err
	}
	if len(h.Media) != len(item.Media) {
		return connector.Ref{}, &connector.Error{
			Kind: connector.KindTransient, Public: "The files of this post have not been uploaded yet.",
		}
	}
	req, err := cl.postRequest(ctx, "/api/posts", encode(s.Account.Grade, item, h))
	if err != nil {
		return connector.Ref{}, err
	}
	var m created
	if err := cl.commit(req, &m); err != nil {
		return connector.Ref{}, err
	}
	failpoint.Panic(failpoint.Committed, item.Text)
	if m.ID == "" && m.Status == "accepted" {
		return connector.Ref{}, nil
	}
	if m.ID == "" {
		return connector.Ref{}, &connector.Error{
			Kind: connector.KindUnknown, Public: "The sandbox did not name the post that it created.",
		}
	}
	return connector.Ref{ID: m.ID, URL: m.URL}, nil
}

type listed struct {
	created
	post
}

// Reconcile looks for the publication among the posts published since item.Committing. It returns
// CannotTell if the account's posts cannot be read back, or if maxPages full pages do not contain
// the publication. It returns any request error, and KindOperator if the Handle cannot be decoded.
func (c *Connector) Reconcile(
	ctx context.Context, s *connector.Session, item connector.Item,
) (connector.Verdict, error) {
	if !s.Account.Grade.Askable() {
		return connector.Verdict{Outcome: connector.CannotTell}, nil
	}
	cl, _, err := c.open(s)
	if err != nil {
		return connector.Verdict{}, err
	}
	h, err := parseHandle(item.Handle)
	if err != nil {
		return connector.Verdict{}, err
	}
	want := encode(s.Account.Grade, item, h)
	q := url.Values{
		"account": {"me"}, "limit": {strconv.Itoa(pageSize)},
		"since": {item.Committing.Add(-margin).Format(time.RFC3339Nano)},
	}
	for range maxPages {
		var list struct {
			Posts []listed `json:"posts"`
		}
		if err := cl.get(ctx, "/api/posts?"+q.Encode(), &list); err != nil {
			return connector.Verdict{}, err
		}
		for _, p := range list.Posts {
			if p.matches(want) {
				ref := connector.Ref{ID: p.created.ID, URL: p.URL}
				return connector.Verdict{Outcome: connector.Published, Ref: ref}, nil
			}
		}
		if len(list.Posts) < pageSize {
			return connector.Verdict{Outcome: connector.NotPublished}, nil
		}
		q.Set("before", list.Posts[pageSize-1].created.ID)
	}
	return connector.Verdict{Outcome: connector.CannotTell}, nil
}

// matches reports whether p and want are the same publication. It compares their keys, which are
// set for GradeIdempotent, and their markers, which are set for GradeMarked.
func (p listed) matches(want post) bool { return p.Key == want.Key && p.Marker == want.Marker }
