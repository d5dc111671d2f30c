package publishing

import (
	"encoding/json"
	"fmt"
	"time"

	"crier/platform/fault"
)

// CreateType is when a created post is published, if at all.
type CreateType string

// The types. Update keeps the state of an existing post and changes its content.
const (
	CreateNow      CreateType = "now"
	CreateSchedule CreateType = "schedule"
	CreateDraft    CreateType = "draft"
	CreateUpdate   CreateType = "update"
)

// Valid reports whether t is one of the four types. The empty one is not: a request must name its type.
func (t CreateType) Valid() bool {
	return t == CreateNow || t == CreateSchedule || t == CreateDraft || t == CreateUpdate
}

// The limits of one CreatePosts. Validate checks them, except MaxText, which applies to sanitised text, and
// MaxIdempotencyKey.
const (
	MaxEntries = 100
	// MaxParts is the limit of one entry, MaxAllParts and MaxAllImages are those of all entries together.
	MaxParts     = 100
	MaxAllParts  = 500
	MaxAllImages = 2_000
	// MaxText is in characters of one part, as it is stored.
	MaxText = 100_000
	// MaxAllTexts is in bytes of all parts and alternative texts, as they are sent and as they are stored.
	MaxAllTexts = 1_000_000
	// MaxAlt is in characters.
	MaxAlt         = 2_000
	MaxAttachments = 40
	// MaxDelay is in minutes.
	MaxDelay = 60 * 24 * 30
	// MaxSettings and MaxAllSettings are in bytes. In the sum, the settings of an entry count once more for each of its
	// parts with a delay, because each begins a post.
	MaxSettings      = 100_000
	MaxAllSettings   = 1_000_000
	MaxSettingsDepth = 100
	// MaxIdempotencyKey and maxID, the limit of a channel id as it is sent, are in bytes.
	MaxIdempotencyKey = 255
	maxID             = 255
)

// CreatePosts asks for one post for each entry. Ids are as the client sent them, so that an unknown id is reported with
// its entry.
type CreatePosts struct {
	Type CreateType
	// Date is in UTC. CreateNow ignores it.
	Date      time.Time
	Entries   []CreateEntry
	Republish bool
	// Override lets an administrator schedule content that is not what was approved: see MayOverride.
	Override bool
	Repeat   Repeat
	// Tags are names of tags. With nil a new post has none, and an existing one keeps its own. A name that no tag has is
	// left out.
	Tags   []string
	Method CreationMethod
	// IdempotencyKey is empty for a request without one.
	IdempotencyKey string
	// RequestHash is the SHA-256 of method, path and body. It distinguishes a repeated request from another one with
	// the same key.
	RequestHash []byte
}

// CreateEntry asks for the post of one channel.
type CreateEntry struct {
	// Channel is a channel id as the client sent it.
	Channel string
	// Group is the id of an existing group to replace, empty for a new post.
	Group string
	Parts []CreatePart
	// Settings is a JSON object, or nil.
	Settings json.RawMessage
}

// CreatePart is the text and the media of one part.
type CreatePart struct {
	// ID is the id of an existing part or post, empty for a new one.
	ID      string
	Content string
	// Type is the form of Content; when it is empty, ReadContent detects it.
	Type  ContentType
	Media []CreateMedium
	// Delay is in minutes after the part before it.
	Delay int
}

// CreateMedium names a stored medium by its URL on this instance, or by its id. The URL wins.
type CreateMedium struct {
	ID  string
	URL string
	Alt string
}

// Validate returns Invalid with every problem that can be found without the database.
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
	if len(c.Tags) > MaxPostTags {
		add("tags", "must hold at most %d tags", MaxPostTags)
	}
	if len(c.Entries) == 0 || len(c.Entries) > MaxEntries {
		add("entries", "must hold 1 to %d entries", MaxEntries)
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
		add("entries", "must hold at most %d parts in all", MaxAllParts)
	}
	if images > MaxAllImages {
		add("entries", "must hold at most %d images in all", MaxAllImages)
	}
	if settings > MaxAllSettings {
		add("entries", "must hold at most %d bytes of settings in all, "+
			"those of an entry counted once more for each of its parts with a delay", MaxAllSettings)
	}
	if texts > MaxAllTexts {
		add("entries", "must hold at most %d bytes of text in all", MaxAllTexts)
	}
	return faults.Err("publishing.CreatePosts", "The post is not valid.")
}

func (e CreateEntry) validate(at string, add func(name, format string, args ...any)) {
	if e.Channel == "" {
		add(at+".channel", "is required")
	}
	if len(e.Channel) > maxID {
		add(at+".channel", "must be at most %d bytes", maxID)
	}
	if len(e.Parts) == 0 || len(e.Parts) > MaxParts {
		add(at+".parts", "must hold 1 to %d parts", MaxParts)
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
		add(at+".media", "must hold at most %d items", MaxAttachments)
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

// Created is the answer to one entry. Post is the root of its thread.
type Created struct {
	Post    PostID
	Channel ChannelID
	// Approval is the effect of the entry on the approval of the post that it replaces.
	Approval ApprovalEffect
}

// CreateResult is the answer to CreatePosts, in the order of the entries.
type CreateResult struct {
	Created []Created
	// Replayed means that this is the stored answer of an earlier request with the same key, and that no post was made.
	Replayed bool
	// Mismatch means that the earlier request was a different one.
	Mismatch bool
}

// ChangeStatus asks to move a post to DRAFT or to QUEUE.
type ChangeStatus struct {
	// To is CreateDraft or CreateSchedule.
	To        CreateType
	Republish bool
	// Override lets an administrator schedule content that is not what was approved: see MayOverride.
	Override bool
}

// StatusChanged is the result of ChangeStatus.
type StatusChanged struct {
	// Post is the root of the thread.
	Post     PostID
	State    State
	Approval ApprovalEffect
}

// Validate returns Invalid for any other type.
func (c ChangeStatus) Validate() error {
	if c.To == CreateDraft || c.To == CreateSchedule {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Op: "publishing.ChangeStatus", Message: "The status is not valid.",
		Fields: []fault.Field{{Name: "to", Message: "must be one of: draft, schedule"}}}
}

// ChangeSettings asks to replace the settings of a post.
type ChangeSettings struct {
	// Settings is a JSON object.
	Settings json.RawMessage
	// Override lets an administrator keep the post in the queue with settings that are not what was approved: see
	// MayOverride.
	Override bool
}

// SettingsChanged is the result of ChangeSettings.
type SettingsChanged struct {
	// Post is the root of the thread.
	Post        PostID
	PublishDate time.Time
	Approval    ApprovalEffect
}

// Validate returns Invalid for settings that cannot be stored.
func (c ChangeSettings) Validate() error {
	var faults fault.List
	if rule := settingsRule(c.Settings); rule != "" {
		faults.Add("settings", rule)
	}
	return faults.Err("publishing.ChangeSettings", "The settings are not valid.")
}

// settingsRule returns the rule that settings break, "" if they can be stored.
func settingsRule(settings json.RawMessage) string {
	if len(settings) > MaxSettings {
		return fmt.Sprintf("must be smaller than %d bytes", MaxSettings)
	}
	if !storableJSON(settings) {
		return fmt.Sprintf("must hold no NUL characters, only numbers of at most %d characters "+
			"with exponents from -%d to %d, and at most %d levels", maxDigits, maxExponent, maxExponent, MaxSettingsDepth)
	}
	return ""
}

// Checked is what the rules find in one entry.
type Checked struct {
	// ID is the channel id as the client sent it.
	ID string
	// Connector and Name are those of the channel; empty for one that does not exist.
	Connector string
	Name      string
	// Problems are sentences for people. A valid entry has none.
	Problems []string
	// SettingsProblem is set when one of them is about the settings.
	SettingsProblem bool
	// Empty is set when the first part has neither text nor media.
	Empty bool
	// MaxLength is the largest text of a part, 0 without a limit, and Length that of the longest part, both in the unit
	// of the platform.
	MaxLength int
	Length    int
}

// TooLong reports whether a part is longer than the platform allows.
func (c Checked) TooLong() bool { return c.MaxLength > 0 && c.Length > c.MaxLength }
