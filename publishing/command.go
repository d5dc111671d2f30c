package publishing

import (
	"encoding/json"
	"fmt"
	"time"

	"crier/platform/fault"
)

// CreateType says whether and when a created post is published.
type CreateType string

// Types of create requests. CreateUpdate changes the content of an existing post and leaves its
// state unchanged.
const (
	CreateNow      CreateType = "now"
	CreateSchedule CreateType = "schedule"
	CreateDraft    CreateType = "draft"
	CreateUpdate   CreateType = "update"
)

// Valid reports whether t is one of the four types. The empty type is not valid, because every
// request must specify a type.
func (t CreateType) Valid() bool {
	return t == CreateNow || t == CreateSchedule || t == CreateDraft || t == CreateUpdate
}

// Limits for a CreatePosts command. Validate checks all of them except MaxText and
// MaxIdempotencyKey. It cannot check MaxText, which applies to the text after sanitizing.
const (
	MaxEntries = 100
	// MaxParts is per entry. MaxAllParts and MaxAllImages are totals across all entries.
	MaxParts     = 100
	MaxAllParts  = 500
	MaxAllImages = 2_000
	// MaxText is the maximum length of a part's text as stored, in characters.
	MaxText = 100_000
	// MaxAllTexts limits the total size of all texts and alternative texts, in bytes. It applies to
	// the texts as sent, and again to the texts as stored.
	MaxAllTexts = 1_000_000
	// MaxAlt is in characters.
	MaxAlt         = 2_000
	MaxAttachments = 40
	// MaxDelay is in minutes.
	MaxDelay = 60 * 24 * 30
	// MaxSettings and MaxAllSettings are in bytes. An entry's settings count toward MaxAllSettings
	// once, and once more for each part with a delay, because each such part begins a separate
	// post.
	MaxSettings      = 100_000
	MaxAllSettings   = 1_000_000
	MaxSettingsDepth = 100
	// MaxIdempotencyKey and maxID are in bytes. maxID is the maximum length of a channel id as sent
	// by the client.
	MaxIdempotencyKey = 255
	maxID             = 255
)

// CreatePosts requests one post per entry. Ids are kept as sent by the client, so that an unknown
// id can be reported with its entry.
type CreatePosts struct {
	Type CreateType
	// Date is in UTC. CreateNow ignores it.
	Date      time.Time
	Entries   []CreateEntry
	Republish bool
	// Override lets an administrator schedule content that differs from the approved content; see
	// MayOverride.
	Override bool
	Repeat   Repeat
	// Tags are tag names. If Tags is nil, a new post has no tags and an existing post keeps its
	// tags. Unknown names are ignored.
	Tags   []string
	Method CreationMethod
	// IdempotencyKey is the key sent by the client, or "" if there is none.
	IdempotencyKey string
	// ReplayFor is how long a repeated request with the same key returns the stored result. The
	// result is not returned if any of its posts has been deleted. If ReplayFor is 0, the result is
	// returned for as long as it is stored, even after posts have been deleted.
	ReplayFor time.Duration `json:",omitzero"` // like the other omitzero, keeps the hashes of older requests
	// RequestHash is the SHA-256 hash of the method, path and body. It distinguishes a repeated
	// request from a different request with the same key.
	RequestHash []byte
	// NoDuplicates rejects a post if its channel has another post with the same text, and the two
	// posts are less than DuplicateTime apart.
	NoDuplicates bool `json:",omitzero"`
	// DryRun checks everything but stores nothing.
	DryRun bool `json:",omitzero"`
}

// DuplicateTime is the minimum time between two posts with the same text if NoDuplicates is set.
const DuplicateTime = 24 * time.Hour

// CreateEntry requests a post on one channel.
type CreateEntry struct {
	// Channel is a channel id as sent by the client.
	Channel string
	// Group is the id of an existing group of posts to replace, or empty to create a new post.
	Group string
	// Date is the date of this entry, in UTC. The zero time means the date of the command.
	Date  time.Time `json:",omitzero"`
	Parts []CreatePart
	// Settings is a JSON object, or nil.
	Settings json.RawMessage
}

// CreatePart holds the text and media of one part.
type CreatePart struct {
	// ID is the id of an existing part or post, or empty for a new part.
	ID      string
	Content string
	// Type is the format of Content. If Type is empty, ReadContent detects the format.
	Type  ContentType
	Media []CreateMedium
	// Delay is the delay after the previous part, in minutes.
	Delay int
}

// CreateMedium identifies a stored medium by its URL on this instance or by its id. If both are
// set, the URL takes precedence.
type CreateMedium struct {
	ID  string
	URL string
	Alt string
}

// Validate returns an Invalid fault that lists every problem detectable without the database.
func (c CreatePosts) Validate() error {
	var faults fault.List
	add := func(name, format string, args ...any) { faults.Add(name, fmt.Sprintf(format, args...)) }
	if !c.Type.Valid() {
		add("type", "must be one of: now, schedule, draft, update")
	}
	if c.Date.IsZero() {
		add("date", "must be an ISO 8601 date, for example 2026-01-02T15:04:05Z")
	} else if !inYears(c.Date) {
		add("date", "%s", yearsRule)
	}
	c.Repeat.validate(c.Date, add)
	if len(c.Tags) > MaxPostTags {
		add("tags", "must contain at most %d tags", MaxPostTags)
	}
	if len(c.Entries) == 0 || len(c.Entries) > MaxEntries {
		add("entries", "must contain 1 to %d entries", MaxEntries)
	}
	parts, images, texts, settings := 0, 0, 0, 0
	for i, e := range c.Entries {
		e.validate(fmt.Sprintf("entries.%d", i), add)
		parts += len(e.Parts)
		settings += len(e.Settings)
		for _, v := range e.Parts {
			if v.Delay > 0 {
				settings += len(e.Settings)
			}
			images += len(v.Media)
			texts += v.textSize()
		}
	}
	if parts > MaxAllParts {
		add("entries", "must contain at most %d parts in total", MaxAllParts)
	}
	if images > MaxAllImages {
		add("entries", "must contain at most %d images in total", MaxAllImages)
	}
	if settings > MaxAllSettings {
		add("entries", "must contain at most %d bytes of settings in total, "+
			"counting those of an entry again for each of its parts with a delay", MaxAllSettings)
	}
	if texts > MaxAllTexts {
		add("entries", "must contain at most %d bytes of text in total", MaxAllTexts)
	}
	return faults.Err("publishing.CreatePosts", "The post is not valid.")
}

// FirstYear and LastYear limit the dates of posts.
const (
	FirstYear = 2000
	LastYear  = 2200
)

// yearsRule is the rule for dates that inYears rejects.
var yearsRule = fmt.Sprintf("must be between the years %d and %d", FirstYear, LastYear)

func inYears(t time.Time) bool { return t.Year() >= FirstYear && t.Year() <= LastYear }

func (e CreateEntry) validate(at string, add func(name, format string, args ...any)) {
	if !e.Date.IsZero() && !inYears(e.Date) {
		add(at+".date", "%s", yearsRule)
	}
	if e.Channel == "" {
		add(at+".channel", "is required")
	}
	if len(e.Channel) > maxID {
		add(at+".channel", "must be at most %d bytes", maxID)
	}
	if len(e.Parts) == 0 || len(e.Parts) > MaxParts {
		add(at+".parts", "must contain 1 to %d parts", MaxParts)
	}
	if rule := settingsRule(e.Settings); rule != "" {
		add(at+".settings", "%s", rule)
	}
	for i, v := range e.Parts {
		v.validate(fmt.Sprintf("%s.parts.%d", at, i), i, add)
	}
}

func (v CreatePart) validate(at string, index int, add func(name, format string, args ...any)) {
	if v.Type != "" && v.Type != ContentText && v.Type != ContentHTML {
		add(at+".type", "must be one of: text, html")
	}
	if !Storable(v.Content) {
		add(at+".content", "must be valid UTF-8 without NUL characters")
	}
	if len(v.Media) > MaxAttachments {
		add(at+".media", "must contain at most %d items", MaxAttachments)
	}
	if v.Delay < 0 || v.Delay > MaxDelay {
		add(at+".delay", "must be 0 to %d minutes", MaxDelay)
	}
	for j, m := range v.Media {
		if len([]rune(m.Alt)) > MaxAlt || !Storable(m.Alt) {
			add(fmt.Sprintf("%s.media.%d.alt", at, j), "must be at most %d characters of valid text", MaxAlt)
		}
	}
}

func (v CreatePart) textSize() int {
	n := len(v.Content)
	for _, m := range v.Media {
		n += len(m.Alt)
	}
	return n
}

// Created is the result for one entry. Post is the root of the thread.
type Created struct {
	Post    PostID
	Channel ChannelID
	// Date is when the post is to be published. It is zero for a post of type CreateNow.
	Date time.Time
	// Zone is the channel's time zone, in the format that tenancy.LoadZone accepts.
	Zone string
	// Approval describes how the entry affected the approval of the post that it replaces.
	Approval ApprovalEffect
}

// CreateResult is the result of CreatePosts. Created is in the order of the entries.
type CreateResult struct {
	Created []Created
	// Replayed means that this is the stored result of an earlier request with the same key. No
	// post was created.
	Replayed bool
	// Mismatch means that the earlier request with the same key differs from this request.
	Mismatch bool
}

// ChangeStatus moves a post to DRAFT or QUEUE.
type ChangeStatus struct {
	// To is CreateDraft or CreateSchedule.
	To        CreateType
	Republish bool
	// Override lets an administrator schedule content that differs from the approved content; see
	// MayOverride.
	Override bool
}

// StatusChanged is the result of ChangeStatus.
type StatusChanged struct {
	// Post is the root of the thread.
	Post     PostID
	State    State
	Approval ApprovalEffect
}

// Validate returns an Invalid fault unless To is CreateDraft or CreateSchedule.
func (c ChangeStatus) Validate() error {
	if c.To == CreateDraft || c.To == CreateSchedule {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Op: "publishing.ChangeStatus", Message: "The status is not valid.",
		Fields: []fault.Field{{Name: "to", Message: "must be one of: draft, schedule"}}}
}

// ChangeSettings changes members of a post's settings.
type ChangeSettings struct {
	// Settings is a JSON object with the members to change. Members set to null are removed.
	Settings json.RawMessage
	// Override lets an administrator keep the post in the queue even if its new settings differ
	// from the approved settings; see MayOverride.
	Override bool
}

// SettingsChanged is the result of ChangeSettings.
type SettingsChanged struct {
	// Post is the root of the thread.
	Post        PostID
	PublishDate time.Time
	Approval    ApprovalEffect
}

// Validate returns an Invalid fault if the settings cannot be stored.
func (c ChangeSettings) Validate() error {
	var faults fault.List
	if rule := settingsRule(c.Settings); rule != "" {
		faults.Add("settings", rule)
	}
	return faults.Err("publishing.ChangeSettings", "The settings are not valid.")
}

// settingsRule returns the rule that the settings violate, or "" if the settings can be stored.
func settingsRule(settings json.RawMessage) string {
	if len(settings) > MaxSettings {
		return fmt.Sprintf("must be smaller than %d bytes", MaxSettings)
	}
	if !storableJSON(settings) {
		return fmt.Sprintf("must contain no NUL characters, only numbers of at most %d characters "+
			"with exponents from -%d to %d, and at most %d levels", maxDigits, maxExponent, maxExponent, MaxSettingsDepth)
	}
	return ""
}

// Checked is the result of checking one entry against the rules.
type Checked struct {
	// ID is the channel id as sent by the client.
	ID string
	// Connector and Name describe the channel. They are empty if the channel does not exist.
	Connector string
	Name      string
	// Zone is the channel's time zone. It is empty if the channel does not exist.
	Zone string
	// Problems are human-readable sentences. A valid entry has none.
	Problems []string
	// SettingsProblem is set if any of the problems concerns the settings.
	SettingsProblem bool
	// Empty is set if the first part has neither text nor media.
	Empty bool
	// MaxLength is the maximum length of a part, or 0 if there is no limit. Length is the length of
	// the longest part. Both are in the platform's unit of length.
	MaxLength int
	Length    int
}

// TooLong reports whether a part is longer than the platform allows.
func (c Checked) TooLong() bool { return c.MaxLength > 0 && c.Length > c.MaxLength }
