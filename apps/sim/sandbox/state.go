package sandbox

import (
	"fmt"
	"time"

	"crier/platform/id"
)

type (
	accountID = id.ID[account]
	mediaID   = id.ID[medium]
	postID    = id.ID[post]
)

// record is one line of the journal. Op determines which other fields are set.
type record struct {
	Op      string    `json:"op"`
	At      time.Time `json:"at"`
	Account *account  `json:"account,omitempty"`
	Session *session  `json:"session,omitempty"`
	Media   *medium   `json:"media,omitempty"`
	Post    *post     `json:"post,omitempty"`
	Grant   *grant    `json:"grant,omitempty"`
	// Ref is the hash of the access token for opExpire, the media id for opPoll, the post id for
	// opDelete, and the grant id for opBind and opRevoke.
	Ref string `json:"ref,omitempty"`
	// Page is the page chosen in opBind.
	Page accountID `json:"page,omitzero"`
}

const (
	opAccount = "account"
	opSession = "session"
	opExpire  = "expire"
	opMedia   = "media"
	opPoll    = "poll"
	opPost    = "post"
	opDelete  = "delete"
	opGrant   = "grant"
	opBind    = "bind"
	opRevoke  = "revoke"
)

type account struct {
	ID           accountID `json:"id"`
	Name         string    `json:"name"`
	Grade        grade     `json:"grade"`
	MaxLength    int       `json:"maxLength"`    // graphemes
	TokenSeconds int       `json:"tokenSeconds"` // lifetime of an access token
	Salt         []byte    `json:"salt"`
	Hash         []byte    `json:"hash"`            // empty for a page, which has no password
	Owner        string    `json:"owner,omitempty"` // the user of a page
}

// session is a pair of tokens, which are stored as hashes.
type session struct {
	Account      accountID `json:"account"`
	Grant        grantID   `json:"grant,omitzero"` // set instead of Account for an OAuth token
	Access       string    `json:"access"`
	Refresh      string    `json:"refresh"`
	Until        time.Time `json:"until"`
	RefreshUntil time.Time `json:"refreshUntil"`
	Replaces     string    `json:"replaces,omitempty"` // the refresh token that this session invalidates
}

type medium struct {
	ID      mediaID   `json:"id"`
	Account accountID `json:"account"`
	Type    string    `json:"type"`
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"`
	Alt     string    `json:"alt,omitempty"`
	Polls   int       `json:"polls,omitempty"` // how many more polls get the status "processing"
	Fails   bool      `json:"fails,omitempty"` // whether processing then fails
}

type post struct {
	ID      postID      `json:"id"`
	Account accountID   `json:"account"`
	Text    string      `json:"text"`
	Media   []postMedia `json:"media,omitempty"`
	ReplyTo postID      `json:"replyTo"`
	Key     string      `json:"key,omitempty"`
	Marker  string      `json:"marker,omitempty"`
	Topic   string      `json:"topic,omitempty"`
}

type postMedia struct {
	ID     mediaID `json:"id"`
	Type   string  `json:"type"`
	SHA256 string  `json:"sha256"`
	Alt    string  `json:"alt,omitempty"`
}

// entry is a post in memory. The post's text is only in the journal.
type entry struct {
	id      postID
	account *account
	root    postID // the first post of the thread, possibly this one
	at      time.Time
	digest  [32]byte // see post.digest
	where   span
	deleted bool
}

type keyOf struct {
	account accountID
	key     string
}

// state is the result of applying all journal records. It is not safe for concurrent use.
type state struct {
	accounts map[string]*account
	byID     map[accountID]*account
	access   map[string]*session
	refresh  map[string]*session
	media    map[mediaID]*medium
	types    map[string]string // content types, by SHA-256, of the files that /media/ may serve
	posts    map[postID]*entry
	keys     map[keyOf]*entry
	order    []*entry              // in order of publication
	pages    map[string][]*account // by user
	grants   map[grantID]*grant
	rotated  map[string]grantID // by the hash of an exchanged refresh token
}

func newState() *state {
	return &state{
		accounts: map[string]*account{}, byID: map[accountID]*account{},
		access: map[string]*session{}, refresh: map[string]*session{},
		media: map[mediaID]*medium{}, types: map[string]string{},
		posts: map[postID]*entry{}, keys: map[keyOf]*entry{},
		pages: map[string][]*account{}, grants: map[grantID]*grant{}, rotated: map[string]grantID{},
	}
}

// apply applies a record. If the sandbox could not have written the record, apply returns an error
// and changes nothing.
func (s *state) apply(r record, where span) error {
	switch {
	case r.Op == opAccount && r.Account != nil:
		s.accounts[r.Account.Name], s.byID[r.Account.ID] = r.Account, r.Account
		if r.Account.Owner != "" {
			s.pages[r.Account.Owner] = append(s.pages[r.Account.Owner], r.Account)
		}
	case r.Op == opGrant && r.Grant != nil:
		s.grants[r.Grant.ID] = r.Grant
	case r.Op == opBind && s.grantOf(r.Ref) != nil && s.byID[r.Page] != nil:
		s.grantOf(r.Ref).Page = r.Page
	case r.Op == opRevoke && s.grantOf(r.Ref) != nil:
		s.grantOf(r.Ref).revoked = true
	case r.Op == opSession && r.Session != nil &&
		(s.byID[r.Session.Account] != nil || s.grants[r.Session.Grant] != nil):
		delete(s.refresh, r.Session.Replaces)
		if !r.Session.Grant.IsZero() && r.Session.Replaces != "" {
			s.rotated[r.Session.Replaces] = r.Session.Grant
		}
		s.access[r.Session.Access], s.refresh[r.Session.Refresh] = r.Session, r.Session
	case r.Op == opExpire && s.access[r.Ref] != nil:
		s.access[r.Ref].Until = time.Time{}
	case r.Op == opMedia && r.Media != nil && s.byID[r.Media.Account] != nil:
		s.media[r.Media.ID], s.types[r.Media.SHA256] = r.Media, r.Media.Type
	case r.Op == opPoll && s.mediumOf(r.Ref) != nil:
		s.mediumOf(r.Ref).Polls--
	case r.Op == opPost && r.Post != nil && s.byID[r.Post.Account] != nil:
		s.addPost(r, where)
	case r.Op == opDelete && s.entryOf(r.Ref) != nil:
		s.entryOf(r.Ref).deleted = true
	default:
		return fmt.Errorf("the record %q is unknown or refers to something that does not exist", r.Op)
	}
	return nil
}

func (s *state) addPost(r record, where span) {
	e := &entry{
		id: r.Post.ID, account: s.byID[r.Post.Account], root: r.Post.ID,
		at: r.At, digest: r.Post.digest(), where: where,
	}
	if parent := s.posts[r.Post.ReplyTo]; parent != nil {
		e.root = parent.root
	}
	s.posts[e.id] = e
	s.order = append(s.order, e)
	if e.account.Grade == gradeA {
		s.keys[keyOf{account: e.account.ID, key: r.Post.Key}] = e
	}
}

func (s *state) grantOf(ref string) *grant {
	v, _ := id.Parse[grant](ref)
	return s.grants[v]
}

func (s *state) mediumOf(ref string) *medium {
	v, _ := id.Parse[medium](ref)
	return s.media[v]
}

// entryOf returns the post with the id ref. It returns nil if the post does not exist or was
// deleted.
func (s *state) entryOf(ref string) *entry {
	v, _ := id.Parse[post](ref)
	if e := s.posts[v]; e != nil && !e.deleted {
		return e
	}
	return nil
}

// sweep removes sessions whose refresh tokens have expired.
func (s *state) sweep(now time.Time) {
	for hash, v := range s.access {
		if now.After(v.RefreshUntil) {
			delete(s.access, hash)
			delete(s.refresh, v.Refresh)
		}
	}
}

// newest returns up to limit published posts for which keep returns true, newest first.
func (s *state) newest(limit int, keep func(*entry) bool) []*entry {
	out := []*entry{}
	for i := len(s.order) - 1; i >= 0 && len(out) < limit; i-- {
		if e := s.order[i]; !e.deleted && keep(e) {
			out = append(out, e)
		}
	}
	return out
}
