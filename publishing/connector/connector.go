// Package connector is what a platform must offer so that Crier can publish to it: one interface, its verdicts and errors, and the registry.
package connector

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/media/picture"
)

// Connector is stateless: everything it needs arrives in the Session and the Item.
//
// The engine calls, for each part of a post: Prepare until it answers Ready (storing the Handle after every call), then writes down that the
// irreversible call is about to be made, then Commit exactly once. After a crash or an unknown outcome it calls Reconcile, never Commit.
type Connector interface {
	// Describe is constant data.
	Describe() Descriptor
	// Connect checks the credentials that a person typed and tells whose account they open. It may call the platform.
	Connect(ctx context.Context, env Env, fields map[string]string) (Connected, error)
	// Validate applies the platform's rules without any network. It finds every problem, in the order of the parts.
	Validate(Draft) []Problem
	// Prepare does reversible work (uploads, containers): at most one call that changes the platform each time, continuing from item.Handle.
	Prepare(ctx context.Context, s *Session, item Item) (Step, error)
	// Commit makes the one irreversible call of this item. An error of KindUnknown means that the platform may have acted.
	Commit(ctx context.Context, s *Session, item Item) (Ref, error)
	// Reconcile asks the platform what became of a Commit. It changes nothing.
	Reconcile(ctx context.Context, s *Session, item Item) (Verdict, error)
}

// Refresher is a connector whose access expires. The engine holds the channel's credential lock while it calls.
type Refresher interface {
	// Refresh returns the new credential; the engine stores it before anything else uses it.
	Refresh(ctx context.Context, s *Session) (Refreshed, error)
}

// Refreshed is the result of Refresh.
type Refreshed struct {
	Credential  json.RawMessage // sealed by the engine
	Destination string          // as in Account, which it replaces: the account may have moved; "" = where it was
}

// Deriver is a connector that cannot take every image as it is. The engine makes the pictures that it asks for, once
// for each image and Spec, and Prepare and Commit get them in place of the images: with bytes, type and size of the
// picture, and without a URL. Reconcile gets the images themselves.
type Deriver interface {
	// Derived returns the picture that the platform gets in place of m; needed is false when it takes m as it is. It
	// looks at type and sizes only and opens nothing. What it asks for must be possible: Validate refuses every image
	// that cannot be made to fit.
	Derived(m Media) (spec picture.Spec, needed bool)
}

// Descriptor is what a platform is and allows.
type Descriptor struct {
	ID           string   // lower-case platform identifier, as on the wire
	Name         string   // display name
	ToolTip      string   // a sentence for the connect dialog, may be empty
	Capabilities []string // of "text", "image", "video"
	Fields       []Field  // the form of a credential platform
	Editor       string   // none, normal, markdown or html
	MaxLength    int      // of one part's text, in Unit
	Unit         Unit
	Media        MediaRules
	Grade        publishing.Grade // usual grade; an account may be worse
	// KeyOnly: the platform de-duplicates by a key that is made of Item.Publication and Item.Due alone, so CreatedAt is
	// not part of the identity of a send.
	KeyOnly bool
	Rules   string // the rules in words, for agents
}

// Field is one input of a credential platform's form.
type Field struct {
	Key          string
	Label        string
	DefaultValue string
	Validation   string // regular expression, Go and JavaScript alike
	Type         string // text or password
	Hint         string
}

// Unit is how a platform counts length.
type Unit string

// The units.
const (
	Graphemes Unit = "graphemes"
	UTF16     Unit = "utf16"
	Runes     Unit = "codepoints"
	Bytes     Unit = "bytes"
)

// MediaRules is what a part may carry.
type MediaRules struct {
	MaxImages     int
	MaxVideos     int
	Mixed         bool  // images and videos together
	MaxImageBytes int64 // 0 = only our own upload limit
	MaxVideoBytes int64
}

// Env is what a connector may use before a channel exists.
type Env struct {
	HTTP  HTTP
	Clock clock.Clock
}

// HTTP is the guarded way out (platform/outbound).
type HTTP interface {
	// Do makes a call that may be repeated or reversed.
	Do(*http.Request) (*http.Response, error)
	// Commit makes an irreversible call once; its error tells whether anything was written. The request has the context
	// of Connector.Commit, which decides whether the call may have a kept connection.
	Commit(*http.Request) (*http.Response, error)
	// Websocket opens a websocket on a connection of its own. When ctx ends, the connection is reset and nothing more
	// of it is sent.
	Websocket(ctx context.Context, url string) (*websocket.Conn, error)
}

// Account is whose account a channel is.
type Account struct {
	ID      string          // the platform's own id, stable over reconnects
	Name    string          // display name
	Profile string          // handle
	Picture string          // URL, may be empty
	Data    json.RawMessage // what the connector wants to remember of it, nothing secret
	Grade   publishing.Grade
	// Destination is where posts of this account go: the host in lower case, with the port if it is not the usual one;
	// several are sorted and joined by commas. At most 255 bytes. The engine bounds the calls at once for each.
	Destination string
}

// Connected is the result of Connect.
type Connected struct {
	Account    Account
	Credential json.RawMessage // sealed by the engine
}

// Session is one channel, opened for work.
type Session struct {
	Env
	Account    Account
	Credential json.RawMessage
}

// Draft is what Validate looks at.
type Draft struct {
	Account  Account
	Settings json.RawMessage
	Parts    []DraftPart
}

// DraftPart is one part of a draft.
type DraftPart struct {
	Text  string // as it would be sent: converted to the connector's format
	Media []Media
}

// Problem is one broken rule.
type Problem struct {
	Part    int    // index of the part
	Message string // a sentence for people
}

// Item is one publication: one part, sent once.
type Item struct {
	// Publication and Due are the identity of the send. They never change when it is tried again.
	Publication publishing.PublicationID
	// Due is when this publication is due: frozen, UTC, millisecond precision, distinct within a thread.
	Due time.Time
	// CreatedAt is the time that the post shows: frozen with the publication, UTC, millisecond precision. It may differ
	// from one try to the next where Descriptor.KeyOnly says so, and equals Due elsewhere.
	CreatedAt  time.Time
	Text       string
	Media      []Media
	Settings   json.RawMessage
	Root       *Ref            // of a reply: the first part
	Parent     *Ref            // of a reply: the part before
	Handle     json.RawMessage // what the last Prepare returned, nil at first; at most 8 KB
	Committing time.Time       // for Reconcile: when the first Commit was about to be called, whatever became of it
}

// Media is one medium of a part. Bytes come from our own store.
type Media struct {
	ContentType string
	Size        int64
	Width       int // pixels, 0 when not known
	Height      int
	Alt         string
	Name        string
	Video       bool
	URL         string // public URL of the file
	Open        func() (io.ReadCloser, error)
}

// Ref names a published part on the platform.
type Ref struct {
	ID   string          `json:"id"`
	URL  string          `json:"url"`
	Data json.RawMessage `json:"data,omitempty"` // what a reply to it needs
}

// Step is the result of Prepare.
type Step struct {
	Ready  bool          // Commit may be called
	Wait   time.Duration // not ready: call again after this; 0 = at once
	Handle json.RawMessage
}

// Outcome of a Reconcile.
type Outcome string

// The outcomes.
const (
	Published    Outcome = "published"
	NotPublished Outcome = "not_published"
	CannotTell   Outcome = "cannot_tell"
)

// Verdict is what Reconcile found; Ref is set when Published.
type Verdict struct {
	Outcome Outcome
	Ref     Ref
}
