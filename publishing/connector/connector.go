// Package connector defines the interface through which Crier publishes to platforms, the outcomes
// and errors of publishing, and the connector registry.
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

// Connector publishes to one platform. It is safe for concurrent use and stateless: the Session and
// the Item contain everything it needs.
//
// For each part of a post, the engine calls Prepare until the Step is Ready, and stores the Handle
// after every call. It then records that a commit is about to begin, and calls Commit once. After a
// crash or an unknown outcome, the engine calls Reconcile. It calls Commit again only if the
// verdict and the account's grade prove that nothing will be published twice.
//
// Methods report failures as an *Error. If a method returns any other error, the engine treats it
// as KindUnknown for Commit, and as KindTransient otherwise.
type Connector interface {
	// Describe returns the platform's properties, which never change.
	Describe() Descriptor
	// Connect checks the credentials entered in the connect form and returns the account to which
	// they belong. It may call the platform. Because Connect can be repeated, it never returns
	// KindUnknown. It returns KindContent if the form is invalid, and KindReauth if the platform
	// rejects the credentials.
	Connect(ctx context.Context, env Env, fields map[string]string) (Connected, error)
	// Validate checks a draft against the platform's rules without making network calls. It returns
	// every problem, ordered by part.
	Validate(Draft) []Problem
	// Prepare does reversible work, such as uploading files or creating containers. Each call
	// continues from item.Handle and makes at most one change on the platform. If Prepare returns
	// KindTransient, the engine calls it again later with the last Handle. KindContent means that
	// the post cannot be published. KindReauth and KindDisconnect affect the whole channel.
	Prepare(ctx context.Context, s *Session, item Item) (Step, error)
	// Commit makes the one irreversible call for this item. If it returns KindUnknown, the platform
	// may have published the item. Any other kind proves that the platform did not.
	Commit(ctx context.Context, s *Session, item Item) (Ref, error)
	// Reconcile queries the platform for the outcome of an earlier Commit. It changes nothing. It
	// returns an error if the platform gave no usable response. After an error, as after
	// CannotTell, the outcome remains unknown.
	Reconcile(ctx context.Context, s *Session, item Item) (Verdict, error)
}

// Refresher is a connector whose credentials expire and can be renewed. For any other connector,
// KindReauth immediately means that a user must reconnect the channel.
type Refresher interface {
	// Refresh returns a new credential. The engine runs at most one Refresh per channel at a time.
	// It stores the new credential, by compare-and-swap, before any other call uses it. If the
	// process crashes first, Refresh is called again with the old credential. If Refresh returns
	// KindReauth, a user must reconnect the channel.
	Refresh(ctx context.Context, s *Session) (Refreshed, error)
}

// Refreshed is the result of Refresh. The account keeps its ID, Data and Grade.
type Refreshed struct {
	// Credential is the new credential. The engine stores it encrypted.
	Credential json.RawMessage
	// Destination replaces Account.Destination, because an account can move to another server. If
	// it is empty, the stored value stays unchanged.
	Destination string
	// ExpiresAt is the time at which the new credential expires, according to the Session's clock.
	// It is zero if unknown.
	ExpiresAt time.Time
	// Name, Profile and Picture replace the Account's values, because users can rename their
	// accounts. If a field is empty, the stored value stays unchanged.
	Name, Profile, Picture string
}

// Deriver is a connector whose platform does not accept every image unchanged. The engine makes one
// picture for each combination of an image and a Spec returned by Derived. Prepare and Commit
// receive the picture in place of the image. The picture has its own bytes, type and size, but no
// URL. Reconcile receives the original images.
type Deriver interface {
	// Derived returns the spec of the picture to send in place of m. needed is false if the
	// platform accepts m unchanged. The result depends only on m's type, size and dimensions.
	// Validate must reject every image for which no picture can meet the Spec.
	Derived(m Media) (spec picture.Spec, needed bool)
}

// Descriptor holds the properties and limits of a platform. They are the same for all accounts.
// Validate also applies each account's own limits.
type Descriptor struct {
	// ID is the platform's lower-case identifier, as used in the API. Example: bluesky
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
	// MaxLength is the maximum text length of one part, measured in Unit.
	MaxLength int
	Unit      Unit
	Media     MediaRules
	// Grade is the usual grade. An individual account may have a lower grade.
	Grade publishing.Grade
	// KeyOnly is true if the platform recognizes repeats by a key that is derived only from
	// Item.Publication and Item.Due. In that case, Item.CreatedAt may differ between retries.
	KeyOnly bool
	// Rules describes the platform's rules in prose, for AI agents.
	Rules string
	// Settings is the JSON Schema for a post's settings; nil if the platform has none.
	Settings json.RawMessage
	// RefreshLead is how long before expiry the engine refreshes a credential. If RefreshLead is 0,
	// the engine refreshes a credential only after the platform has rejected it.
	RefreshLead time.Duration
}

// Field is one input of the connect form. If the input is left empty, DefaultValue is used. The API
// publishes the fields, but omits any DefaultValue that contains "://".
type Field struct {
	Key          string
	Label        string
	DefaultValue string
	// Validation is a regular expression that is valid in both Go and JavaScript.
	Validation string
	// Type is text or password.
	Type string
	Hint string
	// Word is true if the value is a single word without white space, such as a key, a code, a URL
	// or a handle. Any other text pasted along with the word is removed before Connect is called.
	Word bool
}

// Unit is the unit in which a platform measures text length.
type Unit string

// The units. Graphemes are defined by UAX #29. UTF16 counts UTF-16 code units, as JavaScript does.
// Bytes counts UTF-8 bytes.
const (
	Graphemes Unit = "graphemes"
	UTF16     Unit = "utf16"
	Runes     Unit = "codepoints"
	Bytes     Unit = "bytes"
)

// MediaRules limits the media of one part. Check applies all of these limits.
type MediaRules struct {
	// MaxImages limits the number of images in a part; 0 means that images are not accepted.
	MaxImages int
	// MaxVideos limits the number of videos in a part; 0 means that videos are not accepted.
	MaxVideos int
	// Mixed is true if a part may have both images and videos.
	Mixed bool
	// MaxImageBytes limits the size of one image; 0 means that only Crier's own upload limit
	// applies.
	MaxImageBytes int64
	// MaxVideoBytes limits the size of one video; 0 means that only Crier's own upload limit
	// applies.
	MaxVideoBytes int64
}

// Env holds what a connector may use before a channel exists.
type Env struct {
	HTTP  HTTP
	Clock clock.Clock
}

// HTTP makes guarded requests (platform/outbound).
type HTTP interface {
	// Do makes a call that can be repeated or reversed.
	Do(*http.Request) (*http.Response, error)
	// Commit makes an irreversible call at most once. If it fails, it returns an
	// *outbound.SendError whose Written field is true if the request may have left this machine.
	// The request must carry the context that was passed to Connector.Commit, because that context
	// determines whether the request may reuse a connection.
	Commit(*http.Request) (*http.Response, error)
	// Websocket opens a websocket on a dedicated connection. When ctx is done, the connection is
	// reset and nothing more is sent.
	Websocket(ctx context.Context, url string) (*websocket.Conn, error)
}

// Account is the platform account to which a channel publishes.
type Account struct {
	// ID is the platform's ID for the account. It stays the same when the channel is reconnected.
	// Example: did:plc:abc
	ID string
	// Name is the name shown to users. The registry truncates it to 512 bytes.
	Name string
	// Profile is the account's name in URLs, such as a handle or an npub. The registry truncates it
	// to 512 bytes. Example: alice.bsky.social
	Profile string
	// Picture is an http or https URL of at most 2,048 bytes. It may be empty. The registry clears
	// any other value.
	Picture string
	// Data is a JSON document of at most 8 KB for the connector's own use. It must not contain
	// secrets.
	Data  json.RawMessage
	Grade publishing.Grade
	// Destination is the host to which this account's posts are sent, in lower case. The port is
	// included if it is not the default. Multiple hosts are sorted and separated by commas.
	// Destination is at most 255 bytes long. The engine limits concurrent calls per Destination.
	// Example: nos.lol,relay.damus.io
	Destination string
}

// Connected is the result of Connect. If its Account.ID, Account.Data or Credential cannot be
// stored, the registry returns KindContent instead.
type Connected struct {
	Account Account
	// Credential grants access to the account. It is at most 16 KB. The engine stores it encrypted.
	Credential json.RawMessage
	// ExpiresAt is the time at which the credential expires, according to the Env's clock. It is
	// zero if unknown.
	ExpiresAt time.Time
}

// Session is a channel with its decrypted credential. For a stored channel, Account.Destination is
// empty.
type Session struct {
	Env
	Account    Account
	Credential json.RawMessage
	// App is the application through which an Authorizer connected the account. It is zero for any
	// other connector.
	App App
}

// Draft is the input to Validate: one channel's post with all its parts in order.
type Draft struct {
	Account  Account
	Settings json.RawMessage
	Parts    []DraftPart
}

// DraftPart is one part of a draft. Its Media are the original files, even those that will be
// replaced for a Deriver.
type DraftPart struct {
	// Text has already been converted to the platform's format.
	Text  string
	Media []Media
}

// Problem is one violated rule.
type Problem struct {
	// Part is the index in Draft.Parts.
	Part int
	// Message is a sentence for users. It need not name the part, because the caller names it.
	Message string
	// Settings is true if the rule concerns the post's settings.
	Settings bool
}

// Item is one publication: one send of one part.
type Item struct {
	// Publication and Due identify the send. They never change between retries.
	Publication publishing.PublicationID
	// Due is when this publication is due, in UTC with millisecond precision. Each part of a thread
	// has a different Due.
	Due time.Time
	// CreatedAt is the time shown on the post, in UTC with millisecond precision. If
	// Descriptor.KeyOnly is true, it may differ between retries. Otherwise, it equals Due.
	CreatedAt time.Time
	Text      string
	Media     []Media
	Settings  json.RawMessage
	// Root is the first part of the thread. Parent is the previous part. Both are nil if the item
	// is not a reply.
	Root   *Ref
	Parent *Ref
	// Handle is the Handle from the last call to Prepare. It is at most 8 KB, and is nil before the
	// first call.
	Handle json.RawMessage
	// Committing is the time just before the first call to Commit. It is always set when Reconcile
	// is called.
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
	// URL is the public URL of the file. It is "" for a picture made for a Deriver.
	URL string
	// Open opens the file in Crier's own store. It can be called more than once; the caller must
	// close each reader.
	Open func() (io.ReadCloser, error)
}

// Ref identifies a published part on the platform. Example of an ID:
// at://did:plc:abc/app.bsky.feed.post/3k2a
type Ref struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// Data holds what a reply to this part needs, as a JSON document of at most 8 KB.
	Data json.RawMessage `json:"data,omitempty"`
}

// Step is the result of Prepare. The engine stores the Handle before the next call.
type Step struct {
	// Ready is true if Commit may be called.
	Ready bool
	// Wait is how long to wait before Prepare is called again. It is used only if Ready is false.
	Wait time.Duration
	// Handle is passed to the next call as Item.Handle.
	Handle json.RawMessage
}

// Outcome is what Reconcile concludes. The registry replaces any value other than these constants
// with CannotTell.
type Outcome string

// The outcomes. Reconcile must return NotPublished only with proof, because the engine may then
// commit again.
const (
	Published    Outcome = "published"
	NotPublished Outcome = "not_published"
	CannotTell   Outcome = "cannot_tell"
)

// Verdict is the result of Reconcile. Ref is set if Outcome is Published.
type Verdict struct {
	Outcome Outcome
	Ref     Ref
}
