// Package connector defines what a platform must offer so that Crier can publish to it: the Connector interface, its
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

// Connector publishes to one platform. It is stateless: all input is in the Session and the Item. It is safe for
// concurrent use.
//
// For each part of a post the engine calls Prepare until it returns Ready, storing the Handle after every call; then
// it records that the irreversible call comes next; then it calls Commit once. After a crash or an unknown outcome it
// calls Reconcile, and Commit again only if the verdict and the grade of the account prove that this publishes
// nothing twice. Failures are *Error; any other error counts as KindTransient, and in Commit as KindUnknown.
type Connector interface {
	// Describe returns the properties of the platform, which are constant.
	Describe() Descriptor
	// Connect checks the credentials from a form and returns the account that they open. It may call the platform, and
	// may be repeated, so that no error is of KindUnknown. An error of KindContent means that the form is wrong,
	// KindReauth that the platform refuses the credentials.
	Connect(ctx context.Context, env Env, fields map[string]string) (Connected, error)
	// Validate applies the rules of the platform without network calls. It returns every problem, in the order of the
	// parts.
	Validate(Draft) []Problem
	// Prepare does reversible work, such as uploads and containers. It continues from item.Handle, and each call
	// changes the platform at most once. After an error of KindTransient the engine calls Prepare again later, with the
	// last Handle; KindContent ends the post, and KindReauth and KindDisconnect concern the whole channel.
	Prepare(ctx context.Context, s *Session, item Item) (Step, error)
	// Commit makes the one irreversible call of this item. An error of KindUnknown means that the platform may have
	// acted; every other kind proves that it did not.
	Commit(ctx context.Context, s *Session, item Item) (Ref, error)
	// Reconcile asks the platform for the outcome of an earlier Commit. It changes nothing. An error means that the
	// platform did not answer the question: the outcome stays unknown, as with the verdict CannotTell.
	Reconcile(ctx context.Context, s *Session, item Item) (Verdict, error)
}

// Refresher is a connector whose access expires. Without it an error of KindReauth means at once that a user must
// connect the channel again.
type Refresher interface {
	// Refresh returns the new credential. The engine calls it for one channel at a time, and stores the result, by
	// compare-and-swap, before another call uses it. An error of KindReauth means that people must connect the channel
	// again. After a crash Refresh is called once more with the credential from before.
	Refresh(ctx context.Context, s *Session) (Refreshed, error)
}

// Refreshed is what a Refresh may change. The account keeps its ID, Data and Grade.
type Refreshed struct {
	// Credential is the new access; the engine seals it.
	Credential json.RawMessage
	// Destination replaces that of the Account, because an account may move; "" leaves it unchanged.
	Destination string
	// ExpiresAt is when the new access ends, by the clock of the Session; zero when that is not known.
	ExpiresAt time.Time
	// Name, Profile and Picture are new values for the Account, because people rename their
	// accounts. An empty value leaves the stored one unchanged.
	Name, Profile, Picture string
}

// Deriver is a connector that does not take every image as it is. The engine makes one picture for each image and
// Spec that it returns, and passes that to Prepare and Commit in place of the image: with its own bytes, type and
// size, and without a URL. Reconcile gets the original images.
type Deriver interface {
	// Derived returns the picture that the platform gets in place of m; needed is false when it takes m as it is. It
	// uses only the type and the sizes of m. Validate must refuse every image for which the Spec cannot be met.
	Derived(m Media) (spec picture.Spec, needed bool)
}

// Descriptor holds the properties and limits of a platform. They are the same for all accounts; Validate also applies
// those of a single account.
type Descriptor struct {
	// ID is the lower-case identifier of the platform, as in the API.
	ID string
	// Name is shown to users.
	Name string
	// ToolTip is a sentence for the connect dialog. It may be empty.
	ToolTip string
	// Capabilities are of "text", "image" and "video".
	Capabilities []string
	// Fields are the connect form of a platform with credentials.
	Fields []Field
	// Editor is none, normal, markdown or html.
	Editor string
	// MaxLength is the largest text of one part, in Unit.
	MaxLength int
	Unit      Unit
	Media     MediaRules
	// Grade is the usual grade; that of a single account may be lower.
	Grade publishing.Grade
	// KeyOnly is true when the platform de-duplicates by a key made of Item.Publication and Item.Due only, so that
	// Item.CreatedAt is not part of the identity of a send.
	KeyOnly bool
	// Rules are the rules of the platform as text, for agents.
	Rules string
	// Settings is the JSON schema of the settings of a post; nil when the platform has none.
	Settings json.RawMessage
	// RefreshLead is how long before the end of an access the engine refreshes it. 0 means that it does so only when the
	// platform has refused the access.
	RefreshLead time.Duration
}

// Field is one input of the connect form. DefaultValue replaces an empty input. The API lists the fields publicly, but
// without a DefaultValue that contains "://".
type Field struct {
	Key          string
	Label        string
	DefaultValue string
	// Validation is a regular expression that is valid in Go and in JavaScript.
	Validation string
	// Type is text or password.
	Type string
	Hint string
	// Word means that the value contains no white space: a key, a code, an address or a handle.
	// What was pasted along with it is removed before Connect.
	Word bool
}

// Unit is how a platform measures the length of a text.
type Unit string

// The units. Graphemes are those of UAX #29, UTF16 counts code units as JavaScript does, and Bytes are those of UTF-8.
const (
	Graphemes Unit = "graphemes"
	UTF16     Unit = "utf16"
	Runes     Unit = "codepoints"
	Bytes     Unit = "bytes"
)

// MediaRules are the limits on the media of a part. Check applies all of them.
type MediaRules struct {
	// MaxImages is 0 when a part may have no image.
	MaxImages int
	// MaxVideos is 0 when a part may have no video.
	MaxVideos int
	// Mixed is true when a part may have images and videos together.
	Mixed bool
	// MaxImageBytes limits one image; 0 leaves our own upload limit.
	MaxImageBytes int64
	// MaxVideoBytes limits one video; 0 leaves our own upload limit.
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
	// Commit makes an irreversible call at most once. The Written field of its *outbound.SendError is true if the
	// request may have left this machine. The request must have the context of Connector.Commit, which decides
	// whether a kept connection may be used.
	Commit(*http.Request) (*http.Response, error)
	// Websocket opens a websocket on a connection of its own. When ctx ends, the connection is reset and nothing more
	// is sent.
	Websocket(ctx context.Context, url string) (*websocket.Conn, error)
}

// Account is the account on a platform that a channel publishes to.
type Account struct {
	// ID is the id that the platform gives the account. It stays the same when the channel is connected again.
	ID string
	// Name is shown to users. The registry cuts it at 512 bytes.
	Name string
	// Profile is the name of the account in addresses, such as a handle or an npub; the registry cuts it at 512 bytes.
	Profile string
	// Picture is an http or https URL of at most 2,048 bytes; the registry removes any other. It may be empty.
	Picture string
	// Data is for the connector: a JSON document of at most 8 KB without secrets.
	Data  json.RawMessage
	Grade publishing.Grade
	// Destination is the host to which posts of this account go: in lower case, with the port if it is not the
	// default; several hosts are sorted and joined by commas. At most 255 bytes. The engine limits the concurrent
	// calls to each Destination.
	Destination string
}

// Connected is the result of Connect. One whose Account.ID, Account.Data or Credential cannot be stored is refused as
// KindContent by the registry.
type Connected struct {
	Account Account
	// Credential is the access, of at most 16 KB; the engine seals it.
	Credential json.RawMessage
	// ExpiresAt is when the access ends, by the clock of the Env; zero when that is not known.
	ExpiresAt time.Time
}

// Session is one channel with its opened credential. The Account of a stored channel has no Destination.
type Session struct {
	Env
	Account    Account
	Credential json.RawMessage
	// App is the application that an account of an Authorizer was connected with; zero for other platforms.
	App App
}

// Draft is the input of Validate: the post of one channel, with all its parts in order.
type Draft struct {
	Account  Account
	Settings json.RawMessage
	Parts    []DraftPart
}

// DraftPart is one part of a draft. Its Media are the original files, also those that a Deriver replaces.
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
	// Settings is set when the rule is about the settings of the post.
	Settings bool
}

// Item is one publication: one part that is published once.
type Item struct {
	// Publication and Due identify the send. They never change between retries.
	Publication publishing.PublicationID
	// Due is the due time of this publication: frozen, in UTC with milliseconds, and different for each part of a
	// thread.
	Due time.Time
	// CreatedAt is the time that the post shows, in UTC with milliseconds. It may differ between retries if
	// Descriptor.KeyOnly is true, and else it equals Due.
	CreatedAt time.Time
	Text      string
	Media     []Media
	Settings  json.RawMessage
	// Root is the first part of the thread and Parent the previous one; nil when the item is no reply.
	Root   *Ref
	Parent *Ref
	// Handle is what the last Prepare returned, at most 8 KB; nil at first.
	Handle json.RawMessage
	// Committing is set for Reconcile: the time just before the first Commit.
	Committing time.Time
}

// Media is one image or video of a part.
type Media struct {
	ContentType string
	// Size is in bytes.
	Size int64
	// Width is in pixels; 0 when it is not known.
	Width int
	// Height is in pixels; 0 when it is not known.
	Height int
	// Duration is the length of a video; 0 when it is not known.
	Duration time.Duration
	// Alt is the alternative text. It may be empty.
	Alt string
	// Name is the name of the file, with its extension.
	Name  string
	Video bool
	// URL is the public URL of the file; "" for a picture of a Deriver.
	URL string
	// Open returns the bytes from our own store. It may be called several times; the caller closes each result.
	Open func() (io.ReadCloser, error)
}

// Ref names a published part on the platform.
type Ref struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// Data is what a reply to the part needs: a JSON document of at most 8 KB.
	Data json.RawMessage `json:"data,omitempty"`
}

// Step is the result of Prepare. The engine stores the Handle before the next call.
type Step struct {
	// Ready is true when Commit may be called.
	Ready bool
	// Wait is the time until the next call of Prepare when not Ready.
	Wait time.Duration
	// Handle is passed to the next call in the Item.
	Handle json.RawMessage
}

// Outcome is what Reconcile concludes. The registry replaces a value outside of the list by CannotTell.
type Outcome string

// The outcomes. NotPublished requires a proof, because the engine may then commit again.
const (
	Published    Outcome = "published"
	NotPublished Outcome = "not_published"
	CannotTell   Outcome = "cannot_tell"
)

// Verdict is what Reconcile found. Ref is set when the Outcome is Published.
type Verdict struct {
	Outcome Outcome
	Ref     Ref
}
