// Package connector defines the interface through which Crier publishes to a platform, with its
// verdicts and errors, and the registry of connectors.
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
	"crier/publishing/file/picture"
)

// Connector publishes to one platform. It is stateless: all input is in the Session and the Item.
// It is safe for concurrent use.
//
// For each part of a post, the engine calls Prepare until it returns Ready, and stores the Handle
// after every call. It then records that the irreversible call comes next, and calls Commit once.
// After a crash or an unknown outcome it calls Reconcile. It calls Commit again only if the verdict
// and the grade of the account prove that this publishes nothing twice.
//
// A failure is an *Error. Any other error counts as KindTransient, or as KindUnknown if Commit
// returned it.
type Connector interface {
	// Describe returns the properties of the platform. They never change.
	Describe() Descriptor
	// Connect checks the credentials from a form and returns the account they belong to. It may
	// call the platform and may be repeated, so it never returns KindUnknown. KindContent means
	// that the form is wrong, and KindReauth that the platform rejects the credentials.
	Connect(ctx context.Context, env Env, fields map[string]string) (Connected, error)
	// Validate checks a draft against the rules of the platform, without network calls. It returns
	// every problem, in the order of the parts.
	Validate(Draft) []Problem
	// Prepare does reversible work, such as uploading files or creating containers. It continues
	// from item.Handle, and each call makes at most one change on the platform. After KindTransient
	// the engine calls Prepare again later, with the last Handle. KindContent ends the post;
	// KindReauth and KindDisconnect concern the whole channel.
	Prepare(ctx context.Context, s *Session, item Item) (Step, error)
	// Commit makes the one irreversible call for this item. KindUnknown means that the platform may
	// have acted; every other kind proves that it did not.
	Commit(ctx context.Context, s *Session, item Item) (Ref, error)
	// Reconcile asks the platform for the outcome of an earlier Commit. It changes nothing. An
	// error means that the platform gave no usable response: the outcome stays unknown, as it does
	// with CannotTell.
	Reconcile(ctx context.Context, s *Session, item Item) (Verdict, error)
}

// Refresher is a connector whose credentials expire and can be renewed. If a connector is not a
// Refresher, KindReauth means at once that a user must reconnect the channel.
type Refresher interface {
	// Refresh returns a new credential. The engine runs at most one Refresh per channel at a time
	// and stores the result, by compare-and-swap, before any other call uses it. KindReauth means
	// that a user must reconnect the channel. If the process crashes before the result is stored,
	// Refresh is called once more with the old credential.
	Refresh(ctx context.Context, s *Session) (Refreshed, error)
}

// Refreshed is the result of Refresh. The account keeps its ID, Data and Grade.
type Refreshed struct {
	// Credential is the new credential; the engine seals it.
	Credential json.RawMessage
	// Destination replaces Account.Destination, because an account may move to another server. ""
	// leaves it unchanged.
	Destination string
	// ExpiresAt is when the new credential expires, by the clock of the Session; zero if unknown.
	ExpiresAt time.Time
	// Name, Profile and Picture are new values for the Account, because people rename their
	// accounts. An empty value leaves the stored one unchanged.
	Name, Profile, Picture string
}

// Deriver is a connector that does not accept every image as it is. For each image and each Spec
// that Derived returns for it, the engine makes one picture. Prepare and Commit get the picture
// instead of the image, with its own bytes, type and size and without a URL. Reconcile gets the
// original images.
type Deriver interface {
	// Derived returns the spec of the picture that the platform gets in place of m. needed is false
	// if the platform accepts m as it is. Derived uses only the type, size and dimensions of m.
	// Validate must refuse every image for which the Spec cannot be met.
	Derived(m Media) (spec picture.Spec, needed bool)
}

// Descriptor holds the properties and limits of a platform. They are the same for all accounts;
// Validate also applies the limits of the individual account.
type Descriptor struct {
	// ID is the lower-case identifier of the platform, as in the API. Example: bluesky
	ID string
	// Name is shown to users.
	Name string
	// ToolTip is a sentence for the connect dialog. It may be empty.
	ToolTip string
	// Capabilities is a subset of "text", "image" and "video".
	Capabilities []string
	// Fields are the inputs of the connect form. An Authorizer has none.
	Fields []Field
	// Editor is none, normal, markdown or html.
	Editor string
	// MaxLength is the maximum length of the text of one part, in Unit.
	MaxLength int
	Unit      Unit
	Media     MediaRules
	// Grade is the usual grade. An individual account may have a lower one.
	Grade publishing.Grade
	// KeyOnly is true if the platform de-duplicates by a key that is derived only from
	// Item.Publication and Item.Due. Item.CreatedAt is then not part of the identity of a send.
	KeyOnly bool
	// Rules describes the rules of the platform in words, for agents.
	Rules string
	// Settings is the JSON schema of the settings of a post; nil if the platform has none.
	Settings json.RawMessage
	// RefreshLead is how long before a credential expires the engine refreshes it. If it is 0, the
	// engine does so only after the platform has refused the credential.
	RefreshLead time.Duration
}

// Field is one input of the connect form. DefaultValue replaces an empty input. The API lists the
// fields publicly, but omits a DefaultValue that contains "://".
type Field struct {
	Key          string
	Label        string
	DefaultValue string
	// Validation is a regular expression that is valid in Go and in JavaScript.
	Validation string
	// Type is text or password.
	Type string
	Hint string
	// Word is true if the value contains no white space, such as a key, a code, an address or a
	// handle. Anything pasted along with it is removed before Connect.
	Word bool
}

// Unit is how a platform measures the length of a text.
type Unit string

// The units. Graphemes are defined by UAX #29, UTF16 counts code units as JavaScript does, and
// Bytes counts the bytes of UTF-8.
const (
	Graphemes Unit = "graphemes"
	UTF16     Unit = "utf16"
	Runes     Unit = "codepoints"
	Bytes     Unit = "bytes"
)

// MediaRules are the limits on the media of a part. Check applies all of them.
type MediaRules struct {
	// MaxImages is 0 if a part may have no images.
	MaxImages int
	// MaxVideos is 0 if a part may have no videos.
	MaxVideos int
	// Mixed is true if a part may have both images and videos.
	Mixed bool
	// MaxImageBytes limits one image; 0 means that only Crier's own upload limit applies.
	MaxImageBytes int64
	// MaxVideoBytes limits one video; 0 means that only Crier's own upload limit applies.
	MaxVideoBytes int64
}

// Env is what a connector may use before a channel exists.
type Env struct {
	HTTP  HTTP
	Clock clock.Clock
}

// HTTP makes guarded requests (platform/outbound).
type HTTP interface {
	// Do makes a call that may be repeated or reversed.
	Do(*http.Request) (*http.Response, error)
	// Commit makes an irreversible call at most once. A failure is an *outbound.SendError, and its
	// Written field is true if the request may have left this machine. The request must carry the
	// context passed to Connector.Commit, which decides whether a kept connection may be used.
	Commit(*http.Request) (*http.Response, error)
	// Websocket opens a websocket on a dedicated connection. When ctx ends, the connection is reset
	// and nothing more is sent.
	Websocket(ctx context.Context, url string) (*websocket.Conn, error)
}

// Account is the account on a platform that a channel publishes to.
type Account struct {
	// ID is the platform's id of the account. It stays the same when the channel is reconnected.
	// Example: did:plc:abc
	ID string
	// Name is shown to users. The registry cuts it at 512 bytes.
	Name string
	// Profile is the name of the account in addresses, such as a handle or an npub. The registry
	// cuts it at 512 bytes. Example: alice.bsky.social
	Profile string
	// Picture is an http or https URL of at most 2,048 bytes; the registry removes any other. It
	// may be empty.
	Picture string
	// Data is for the connector's own use: a JSON document of at most 8 KB, without secrets.
	Data  json.RawMessage
	Grade publishing.Grade
	// Destination is the host that posts of this account are sent to, in lower case, with the port
	// if it is not the default. Several hosts are sorted and joined by commas; the limit is 255
	// bytes. The engine limits the concurrent calls to each Destination. Example:
	// nos.lol,relay.damus.io
	Destination string
}

// Connected is the result of Connect. The registry refuses it with KindContent if its Account.ID,
// Account.Data or Credential cannot be stored.
type Connected struct {
	Account Account
	// Credential gives access to the account. It has at most 16 KB; the engine seals it.
	Credential json.RawMessage
	// ExpiresAt is when the credential expires, by the clock of the Env; zero if unknown.
	ExpiresAt time.Time
}

// Session is one channel with its opened credential. The Account of a stored channel has no
// Destination.
type Session struct {
	Env
	Account    Account
	Credential json.RawMessage
	// App is the application through which an account of an Authorizer was connected; zero for
	// other platforms.
	App App
}

// Draft is the input of Validate: the post of one channel, with all its parts in order.
type Draft struct {
	Account  Account
	Settings json.RawMessage
	Parts    []DraftPart
}

// DraftPart is one part of a draft. Its Media are the original files, including those that a
// Deriver replaces.
type DraftPart struct {
	// Text is already converted to the format of the platform.
	Text  string
	Media []Media
}

// Problem is one violated rule.
type Problem struct {
	// Part is the index in Draft.Parts.
	Part int
	// Message is a sentence for users. It need not name the part, because the caller does.
	Message string
	// Settings is true if the rule is about the settings of the post.
	Settings bool
}

// Item is one publication: one send of one part.
type Item struct {
	// Publication and Due identify the send. They never change between retries.
	Publication publishing.PublicationID
	// Due is the due time of this publication, in UTC with millisecond precision. It is frozen, and
	// each part of a thread has a different one.
	Due time.Time
	// CreatedAt is the time that the post shows, in UTC with millisecond precision. It equals Due,
	// unless Descriptor.KeyOnly is true: then it may differ between retries.
	CreatedAt time.Time
	Text      string
	Media     []Media
	Settings  json.RawMessage
	// Root is the first part of the thread and Parent the previous one. Both are nil if the item is
	// not a reply.
	Root   *Ref
	Parent *Ref
	// Handle is what the last Prepare returned, at most 8 KB; nil before the first call.
	Handle json.RawMessage
	// Committing is the time just before the first Commit. It is set for Reconcile.
	Committing time.Time
}

// Media is one image or video of a part.
type Media struct {
	ContentType string
	// Size is in bytes.
	Size int64
	// Width is in pixels; 0 if unknown.
	Width int
	// Height is in pixels; 0 if unknown.
	Height int
	// Duration is the length of a video; 0 if unknown.
	Duration time.Duration
	// Alt is the alternative text. It may be empty.
	Alt string
	// Name is the file name, with its extension.
	Name  string
	Video bool
	// URL is the public URL of the file; "" for a picture made for a Deriver.
	URL string
	// Open returns the bytes from Crier's own store. It may be called several times; the caller
	// must close each result.
	Open func() (io.ReadCloser, error)
}

// Ref identifies a published part on the platform. Example of an ID:
// at://did:plc:abc/app.bsky.feed.post/3k2a
type Ref struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// Data is what a reply to the part needs: a JSON document of at most 8 KB.
	Data json.RawMessage `json:"data,omitempty"`
}

// Step is the result of Prepare. The engine stores the Handle before the next call.
type Step struct {
	// Ready is true if Commit may be called.
	Ready bool
	// Wait is how long to wait before the next call of Prepare if Ready is false.
	Wait time.Duration
	// Handle is passed to the next call, in the Item.
	Handle json.RawMessage
}

// Outcome is what Reconcile concludes. The registry replaces any value other than these constants
// with CannotTell.
type Outcome string

// The outcomes. NotPublished requires proof, because the engine may then commit again.
const (
	Published    Outcome = "published"
	NotPublished Outcome = "not_published"
	CannotTell   Outcome = "cannot_tell"
)

// Verdict is what Reconcile found. Ref is set if Outcome is Published.
type Verdict struct {
	Outcome Outcome
	Ref     Ref
}
