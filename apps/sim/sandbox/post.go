package sandbox

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"crier/platform/id"
)

const (
	maxAttachments = 4
	maxKey         = 200 // characters in key and in marker
	maxPage        = 100
)

type postInput struct {
	Text    string       `json:"text"`
	Media   []mediaInput `json:"media"`
	ReplyTo string       `json:"replyTo"`
	Key     string       `json:"key"`
	Marker  string       `json:"marker"`
	Topic   string       `json:"topic"`
}

type mediaInput struct {
	ID  string `json:"id"`
	Alt string `json:"alt"`
}

type createdView struct {
	ID        postID    `json:"id"`
	URL       string    `json:"url"`
	CreatedAt time.Time `json:"createdAt"`
}

// characters returns the number of grapheme clusters in text, which users perceive as characters.
func characters(text string) (n int) {
	for all := graphemes.FromString(text); all.Next(); {
		n++
	}
	return n
}

func (in postInput) check(a *account) error {
	switch {
	case strings.TrimSpace(in.Text) == "" && len(in.Media) == 0:
		return refuse(422, "empty", "A post needs text or media.")
	case characters(in.Text) > a.MaxLength:
		return refuse(422, "too_long", "The text has %d characters; at most %d are allowed.", characters(in.Text), a.MaxLength)
	case len(in.Media) > maxAttachments:
		return refuse(422, "too_many_media", "A post may have at most %d media.", maxAttachments)
	case a.Grade == gradeA && in.Key == "":
		return refuse(422, "key_missing", "This account needs a key on every post.")
	case a.Grade != gradeC && in.Marker != "":
		return refuse(422, "marker_not_supported", "Only accounts of grade C keep a marker.")
	case utf8.RuneCountInString(in.Key) > maxKey || utf8.RuneCountInString(in.Marker) > maxKey:
		return refuse(422, "key_too_long", "key and marker may have at most %d characters.", maxKey)
	case in.Topic != "" && !slices.ContainsFunc(topics, func(t topicView) bool { return t.ID == in.Topic }):
		return refuse(422, "bad_topic", "There is no such topic.")
	}
	for _, m := range in.Media {
		if utf8.RuneCountInString(m.Alt) > maxAlt {
			return refuse(422, "alt_too_long", "alt may have at most %d characters.", maxAlt)
		}
	}
	return nil
}

// posts has the endpoints for posts.
type posts struct{ *Platform }

func (p posts) createPost(c *call) (answer, error) {
	var in postInput
	if err := decode(c.body, &in, "text", "media", "id", "alt", "replyTo", "key", "marker", "topic"); err != nil {
		return answer{}, err
	}
	if err := in.check(c.account); err != nil {
		return answer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	made := &post{ID: id.New[post](), Account: c.account.ID, Text: in.Text, Key: in.Key, Marker: in.Marker, Topic: in.Topic}
	if err := p.state.attach(made, in.Media); err != nil {
		return answer{}, err
	}
	parent := p.state.ownPost(c.account, in.ReplyTo)
	if parent != nil {
		made.ReplyTo = parent.id
	}
	if c.account.Grade == gradeA {
		if first := p.state.keys[keyOf{account: c.account.ID, key: in.Key}]; first != nil {
			return p.repeated(c, first, made)
		}
	}
	if in.ReplyTo != "" && (parent == nil || parent.deleted) {
		return answer{}, refuse(422, "reply_not_found", "replyTo must be a published post of this account.")
	}
	if err := p.commit(record{Op: opPost, Post: made}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, body: p.viewCreated(c.r, p.state.posts[made.ID])}, nil
}

// attach adds media to a post. Alternative text given with the post takes precedence over
// alternative text given with the upload.
func (s *state) attach(to *post, media []mediaInput) error {
	for _, in := range media {
		m := s.mediumOf(in.ID)
		if m == nil || m.Account != to.Account {
			return refuse(422, "media_not_found", "This account has no media \"%s\".", in.ID)
		}
		if m.status() != "ready" {
			return refuse(422, "media_"+m.status(), "Media %s is not ready: %s.", m.ID, m.status())
		}
		alt := in.Alt
		if alt == "" {
			alt = m.Alt
		}
		to.Media = append(to.Media, postMedia{ID: m.ID, Type: m.Type, SHA256: m.SHA256, Alt: alt})
	}
	return nil
}

// ownPost returns one of the account's posts, or nil. The post may have been deleted.
func (s *state) ownPost(a *account, ref string) *entry {
	v, _ := id.Parse[post](ref)
	if e := s.posts[v]; e != nil && e.account == a {
		return e
	}
	return nil
}

// repeated responds to a request that has the same key as an earlier request by the same grade A
// account. If the content is the same, it returns the earlier post, or an error if that post was
// deleted. Otherwise, it returns a conflict.
func (p posts) repeated(c *call, first *entry, again *post) (answer, error) {
	if first.digest != again.digest() {
		return answer{}, refuse(http.StatusConflict, "key_reused", "This key has already been used for other content.")
	}
	if first.deleted {
		return answer{}, refuse(http.StatusGone, "deleted", "The post created with this key was deleted.")
	}
	return answer{status: http.StatusOK, body: p.viewCreated(c.r, first)}, nil
}

// digest returns a hash of the content, with each medium represented by the hash of its bytes.
func (v *post) digest() [32]byte {
	parts := []string{v.Text, v.ReplyTo.String()}
	for _, m := range v.Media {
		parts = append(parts, m.SHA256, m.Alt)
	}
	if v.Topic != "" {
		parts = append(parts, v.Topic)
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q", parts))
}

func (p posts) viewCreated(r *http.Request, e *entry) createdView {
	return createdView{ID: e.id, URL: p.baseURL(r) + "?post=" + e.id.String(), CreatedAt: e.at}
}

func (p posts) deletePost(c *call) (answer, error) {
	if _, err := query(c.r); err != nil {
		return answer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.state.ownPost(c.account, c.r.PathValue("id"))
	if e == nil || e.deleted {
		return answer{}, refuse(http.StatusNotFound, "post_not_found", "This account has no such post.")
	}
	if err := p.commit(record{Op: opDelete, Ref: e.id.String()}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

type postView struct {
	ID        postID      `json:"id"`
	URL       string      `json:"url"`
	CreatedAt time.Time   `json:"createdAt"`
	Text      string      `json:"text"`
	Media     []postMedia `json:"media"`
	ReplyTo   *postID     `json:"replyTo"`
	Key       string      `json:"key,omitempty"`
	Marker    string      `json:"marker,omitempty"`
}

func (p posts) listPosts(c *call) (answer, error) {
	q, err := query(c.r, "account", "since", "before", "limit")
	if err != nil {
		return answer{}, err
	}
	if c.account.Grade == gradeE {
		return answer{}, refuse(http.StatusForbidden, "cannot_be_asked", "Accounts of grade E cannot be read back.")
	}
	if v := q.Get("account"); v != "me" {
		return answer{}, refuse(422, "bad_account", "account must be me.")
	}
	var since time.Time
	if v := q.Get("since"); v != "" {
		since, err = time.Parse(time.RFC3339, v)
		if err != nil {
			return answer{}, refuse(422, "bad_since", "since must be a time like 2006-01-02T15:04:05Z.")
		}
	}
	limit := 20
	if v := q.Get("limit"); v != "" {
		limit, err = strconv.Atoi(v)
		if err != nil || limit < 1 || limit > maxPage {
			return answer{}, refuse(422, "bad_limit", "limit must be 1 to %d.", maxPage)
		}
	}
	before := q.Get("before")
	older := before == ""
	_, recs, err := p.load(limit, func(e *entry) bool {
		if !older {
			older = e.account == c.account && e.id.String() == before
			return false
		}
		return e.account == c.account && !e.at.Before(since)
	})
	if err != nil {
		return answer{}, err
	}
	if !older {
		return answer{}, refuse(422, "bad_before", "before must be the id of a post of this account.")
	}
	views := []postView{}
	for _, r := range recs {
		v := r.Post
		views = append(views, postView{
			ID: v.ID, URL: p.baseURL(c.r) + "?post=" + v.ID.String(), CreatedAt: r.At, Text: v.Text,
			Media: orEmpty(v.Media), ReplyTo: orNull(v.ReplyTo), Key: v.Key, Marker: v.Marker,
		})
	}
	return answer{status: http.StatusOK, body: map[string]any{"posts": views}}, nil
}

// load returns up to limit published posts for which keep returns true, newest first, along with
// their journal records.
func (p *Platform) load(limit int, keep func(*entry) bool) ([]*entry, []record, error) {
	p.mu.Lock()
	found := p.state.newest(limit, keep)
	p.mu.Unlock()
	recs := make([]record, len(found))
	for i, e := range found {
		rec, err := p.journal.read(e.where)
		if err != nil {
			return nil, nil, err
		}
		recs[i] = rec
	}
	return found, recs, nil
}

func orEmpty(m []postMedia) []postMedia {
	if m == nil {
		return []postMedia{}
	}
	return m
}

func orNull(v postID) *postID {
	if v.IsZero() {
		return nil
	}
	return &v
}
