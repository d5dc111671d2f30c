package publishing

import (
	"encoding/json"
	"fmt"
	"time"

	"crier/platform/fault"
)

// CreateType says what becomes of a new post.
type CreateType string

// The types. Update keeps the state of an existing post and changes its content.
const (
	CreateNow      CreateType = "now"
	CreateSchedule CreateType = "schedule"
	CreateDraft    CreateType = "draft"
	CreateUpdate   CreateType = "update"
)

// Valid tells whether the type exists.
func (t CreateType) Valid() bool {
	return t == CreateNow || t == CreateSchedule || t == CreateDraft || t == CreateUpdate
}

// The sizes that one create may have.
const (
	MaxEntries        = 100
	MaxParts          = 100       // of one entry
	MaxAllParts       = 500       // of all entries
	MaxAllImages      = 2_000     // of all parts
	MaxText           = 100_000   // characters of one part, as it is stored
	MaxAllTexts       = 1_000_000 // bytes of all parts and alternative texts, as they are sent and as they are stored
	MaxAlt            = 2_000     // characters
	MaxAttachments    = 40
	MaxDelay          = 60 * 24 * 30 // minutes
	MaxSettings       = 100_000      // bytes
	MaxAllSettings    = 1_000_000    // bytes of all posts: those of an entry count once more for each part with a delay
	MaxSettingsDepth  = 100
	MaxIdempotencyKey = 255
	maxID             = 255 // bytes of a channel id as it is sent
)

// CreatePosts asks for one post per entry. Ids stay as the client sent them: an id that names nothing is that entry's fault.
type CreatePosts struct {
	Type           CreateType
	Date           time.Time // UTC; ignored for now
	Entries        []CreateEntry
	Republish      bool
	Repeat         Repeat
	Method         CreationMethod
	IdempotencyKey string // empty = none
	RequestHash    []byte // SHA-256 of method, path and body, to tell a repeat from another request under the same key
}

// CreateEntry is one channel's share.
type CreateEntry struct {
	Integration string // channel id
	Group       string // existing group to replace, empty for a new one
	Value       []CreateValue
	Settings    json.RawMessage // object, nil = none
}

// CreateValue is one part.
type CreateValue struct {
	ID      string // existing part or post id, empty for a new one
	Content string
	Type    ContentType // of Content; empty = told from it, see ReadContent
	Image   []CreateImage
	Delay   int // minutes after the part before
}

// CreateImage names a stored medium by its URL on this instance, or by its id. The URL wins.
type CreateImage struct {
	ID  string
	URL string
	Alt string
}

// Validate finds every fault that needs no look-up.
func (c CreatePosts) Validate() error {
	var faults fault.List
	add := func(name, format string, args ...any) { faults.Add(name, fmt.Sprintf(format, args...)) }
	if !c.Type.Valid() {
		add("type", "must be one of: now, schedule, draft, update")
	}
	if c.Date.IsZero() {
		add("date", "must be an ISO 8601 date, for example 2026-01-02T15:04:05Z")
	} else if y := c.Date.Year(); y < 2000 || y > 2200 {
		add("date", "must lie between the years 2000 and 2200")
	}
	c.Repeat.validate(c.Date, add)
	if len(c.Entries) == 0 || len(c.Entries) > MaxEntries {
		add("posts", "must hold 1 to %d entries", MaxEntries)
	}
	parts, images, texts, settings := 0, 0, 0, 0
	for i, e := range c.Entries {
		e.validate(fmt.Sprintf("posts.%d", i), add)
		parts += len(e.Value)
		settings += len(e.Settings)
		for _, v := range e.Value {
			if v.Delay > 0 {
				settings += len(e.Settings)
			}
			images += len(v.Image)
			texts += v.bytes()
		}
	}
	if parts > MaxAllParts {
		add("posts", "must hold at most %d parts in all", MaxAllParts)
	}
	if images > MaxAllImages {
		add("posts", "must hold at most %d images in all", MaxAllImages)
	}
	if settings > MaxAllSettings {
		add("posts", "must hold at most %d bytes of settings in all, those of an entry counted once more for each of its parts with a delay", MaxAllSettings)
	}
	if texts > MaxAllTexts {
		add("posts", "must hold at most %d bytes of text in all", MaxAllTexts)
	}
	return faults.Err("publishing.CreatePosts", "The post is not valid.")
}

func (e CreateEntry) validate(at string, add func(name, format string, args ...any)) {
	if e.Integration == "" {
		add(at+".integration.id", "is required")
	}
	if len(e.Integration) > maxID {
		add(at+".integration.id", "must be at most %d bytes", maxID)
	}
	if len(e.Value) == 0 || len(e.Value) > MaxParts {
		add(at+".value", "must hold 1 to %d parts", MaxParts)
	}
	if len(e.Settings) > MaxSettings {
		add(at+".settings", "must be smaller than %d bytes", MaxSettings)
	} else if !storableJSON(e.Settings) {
		add(at+".settings", "must hold no NUL characters, only numbers of at most %d characters with exponents from -%d to %d, and at most %d levels", maxDigits, maxExponent, maxExponent, MaxSettingsDepth)
	}
	for i, v := range e.Value {
		v.validate(fmt.Sprintf("%s.value.%d", at, i), i, add)
	}
}

func (v CreateValue) validate(at string, index int, add func(name, format string, args ...any)) {
	if v.Type != "" && v.Type != ContentText && v.Type != ContentHTML {
		add(at+".contentType", "must be one of: text, html")
	}
	if !Storable(v.Content) {
		add(at+".content", "must be valid UTF-8 without NUL characters")
	}
	if len(v.Image) > MaxAttachments {
		add(at+".image", "must hold at most %d items", MaxAttachments)
	}
	if v.Delay < 0 || v.Delay > MaxDelay {
		add(at+".delay", "must be 0 to %d minutes", MaxDelay)
	}
	if index == 0 && v.Delay > 0 {
		add(at+".delay", "must be 0 for the first part")
	}
	for j, m := range v.Image {
		if len([]rune(m.Alt)) > MaxAlt || !Storable(m.Alt) {
			add(fmt.Sprintf("%s.image.%d.alt", at, j), "must be at most %d characters of valid text", MaxAlt)
		}
	}
}

// bytes is how long the texts of a part are.
func (v CreateValue) bytes() int {
	n := len(v.Content)
	for _, m := range v.Image {
		n += len(m.Alt)
	}
	return n
}

// Created is one entry's answer.
type Created struct {
	Post    PostID
	Channel ChannelID
}

// CreateResult is the answer to CreatePosts, in the order of the entries.
type CreateResult struct {
	Created  []Created
	Replayed bool // the key had an answer already: this is it, nothing new was made
	Mismatch bool // and the repeat's body differed from the first
}

// ChangeStatus takes a post to DRAFT or to QUEUE.
type ChangeStatus struct {
	Status    string // draft or schedule
	Republish bool
}

// Validate checks the word.
func (c ChangeStatus) Validate() error {
	if c.Status == "draft" || c.Status == "schedule" {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Op: "publishing.ChangeStatus", Message: "The status is not valid.",
		Fields: []fault.Field{{Name: "status", Message: "must be one of: draft, schedule"}}}
}
