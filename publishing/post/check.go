package post

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/publishing/file/metadata"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// checked is an entry together with the channel, media and tags that it refers to.
type checked struct {
	channel  publishing.Channel
	date     time.Time // of the entry; zero if it has the date of its command
	settings json.RawMessage
	parts    []checkedPart
	group    string             // existing group, as sent
	tags     []publishing.TagID // set by makePlans
	// problems holds the problems that checkEntry finds: missing files and texts that are too long.
	// They are found before the platform's rules are applied.
	problems []connector.Problem
	// badSettings is set by checkEntry if the settings violate one of the platform's rules.
	badSettings bool
}

type checkedPart struct {
	id      string // existing part, as sent
	content publishing.Content
	plain   string // the text for the platform, without markup
	media   []dispatch.AttachedMedium
	delay   time.Duration
	// tooLong means that the text is longer than any platform allows. The platform's rules are not
	// applied to such a part.
	tooLong bool
	// lacking means that at least one of the part's files was not found. Such a part does not count
	// as empty, even if it has no other content.
	lacking bool
}

// checker looks up the channels and media that entries refer to. It also checks the entries against
// the text rules and the platforms' rules. It is safe for concurrent use.
type checker struct {
	db         *db.DB
	blobs      blob.Store
	connectors *connector.Registry
	baseURL    string
}

// check looks up every entry's channel and media, and checks the entry against the text rules and
// the platform's rules. It returns an Invalid fault that lists the problems found in every entry.
// It returns TooLarge if the checks take longer than a request may take.
func (s *checker) check(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) ([]checked, error) {
	known, err := s.lookup(ctx, p, cmd)
	if err != nil {
		return nil, pg.Fault("publishing.check", err)
	}
	var out []checked
	var problems []fault.Item
	for i, e := range cmd.Entries {
		entry, bad := s.checkEntry(ctx, known, e, cmd.Type)
		if ctx.Err() != nil {
			return nil, fault.Wrap(fault.TooLarge, "publishing.check", checkTooSlow, ctx.Err())
		}
		if len(bad) > 0 && i > 0 && bad[0].Kind == "" {
			bad[0].Message = fmt.Sprintf("Entry %d: %s", i+1, bad[0].Message)
		}
		problems = append(problems, bad...)
		out = append(out, entry)
		if len(problems) > fault.MaxListed {
			// There are now more problems than a response lists, so the response says that there
			// are more.
			break
		}
	}
	if len(problems) > 0 {
		return nil, contentFault(problems)
	}
	return out, checkTexts(out)
}

// checkTexts returns Invalid if the total size of the entries' texts, as stored, exceeds the limit.
func checkTexts(entries []checked) error {
	size := 0
	for _, e := range entries {
		for _, part := range e.parts {
			size += len(part.content.Text)
		}
	}
	if size <= publishing.MaxAllTexts {
		return nil
	}
	message := fmt.Sprintf("must contain at most %d bytes of text in total, markup included", publishing.MaxAllTexts)
	return &fault.Error{
		Kind: fault.Invalid, Op: "publishing.check", Message: "The post is not valid.",
		Fields: []fault.Field{{Name: "entries", Message: message}},
	}
}

const checkTooSlow = "Checking these posts takes longer than a request may take: send fewer at once."

// catalogue holds the channels and media that a command's entries refer to. They are keyed by id,
// except in byKey, which is keyed by file key.
type catalogue struct {
	channels map[string]publishing.Channel
	byID     map[string]publishing.Medium
	byKey    map[string]publishing.Medium
}

func (s *checker) lookup(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (catalogue, error) {
	var channels []publishing.ChannelID
	var media []publishing.MediaID
	keys := []string{}
	for _, e := range cmd.Entries {
		if c, ok := id.Parse[publishing.ChannelTag](e.Channel); ok {
			channels = append(channels, c)
		}
		for _, v := range e.Parts {
			for _, m := range v.Media {
				if key, ours := publishing.FileKey(s.baseURL, m.URL); ours {
					keys = append(keys, key)
				} else if parsed, ok := id.Parse[publishing.MediaTag](m.ID); ok && m.URL == "" {
					media = append(media, parsed)
				}
			}
		}
	}
	k, err := poststore.Lookup(ctx, s.db, p.Org, channels, media, keys)
	out := catalogue{
		channels: map[string]publishing.Channel{},
		byID:     map[string]publishing.Medium{}, byKey: map[string]publishing.Medium{},
	}
	for _, c := range k.Channels {
		out.channels[c.ID.String()] = c
	}
	for _, m := range k.Media {
		out.byID[m.ID.String()], out.byKey[m.Key] = m, m
	}
	return out, err
}

// checkEntry looks up an entry's channel and media. It returns the checked entry and its problems.
func (s *checker) checkEntry(
	ctx context.Context, known catalogue, e publishing.CreateEntry, t publishing.CreateType,
) (checked, []fault.Item) {
	channel, ok := known.channels[strings.ToLower(e.Channel)]
	if !ok {
		message := "There is no channel with the id " + connector.Quote(e.Channel) + "."
		return checked{}, []fault.Item{{ID: e.Channel, Message: message}}
	}
	out := checked{channel: channel, date: e.Date, settings: e.Settings, group: strings.TrimSpace(e.Group)}
	for i, v := range e.Parts {
		part := checkedPart{
			id: strings.TrimSpace(v.ID), content: publishing.ReadContent(v.Content, v.Type),
		}
		// Clients send a delay with every part, but the first part has nothing to wait for.
		if i > 0 {
			part.delay = time.Duration(v.Delay) * time.Minute
		}
		part.plain = part.content.Plain()
		if utf8.RuneCountInString(part.content.Text) > publishing.MaxText {
			part.tooLong = true
			out.problems = append(out.problems, connector.Problem{Part: i, Message: tooLong})
		}
		for _, m := range v.Media {
			medium, problem := s.medium(known, m)
			if problem != "" {
				part.lacking = true
				if len(out.problems) <= fault.MaxListed {
					out.problems = append(out.problems, connector.Problem{Part: i, Message: problem})
				}
				continue
			}
			part.media = append(part.media, dispatch.AttachedMedium{
				Medium: medium, Alt: cmp.Or(m.Alt, medium.Alt),
			})
		}
		out.parts = append(out.parts, part)
	}
	problems, badSettings := s.rules(ctx, out, t)
	out.badSettings = badSettings
	return out, problems
}

// medium returns the file that an attachment refers to. If the file cannot be used, medium returns
// a sentence for the client that explains why.
func (s *checker) medium(known catalogue, m publishing.CreateMedium) (publishing.Medium, string) {
	if m.URL != "" {
		key, ours := publishing.FileKey(s.baseURL, m.URL)
		if !ours {
			return publishing.Medium{}, "The file " + connector.Quote(m.URL) + " is not on this service: upload it first with " +
				"POST /upload, or with POST /upload-from-url from its address."
		}
		if medium, ok := known.byKey[key]; ok {
			return medium, ""
		}
		return publishing.Medium{}, "There is no file at " + connector.Quote(m.URL) + "."
	}
	if medium, ok := known.byID[strings.ToLower(m.ID)]; ok {
		return medium, ""
	}
	return publishing.Medium{}, "There is no file with the id " + connector.Quote(m.ID) + "."
}

// rules returns an entry's problems: those that checkEntry found earlier, and violations of the
// platform's rules. For a draft, the only rule is that it must not be empty.
func (s *checker) rules(ctx context.Context, e checked, t publishing.CreateType) (problems []fault.Item, settings bool) {
	if t == publishing.CreateDraft {
		if first := e.parts[0]; first.empty() && !first.lacking {
			const message = "The draft is empty: write some text, or add an image or video."
			return []fault.Item{problemOf(e.channel, 0, 1, message)}, false
		}
		return e.listed(nil)
	}
	return s.channelRules(ctx, e)
}

// channelRules returns an entry's problems: those that checkEntry found earlier, and violations of
// the platform's rules. If the channel is disabled or this instance does not support its platform,
// channelRules adds that problem and skips the platform's rules. settings is true if any of the
// problems concerns the settings.
func (s *checker) channelRules(ctx context.Context, e checked) (problems []fault.Item, settings bool) {
	whole := func(message string) ([]fault.Item, bool) {
		others, _ := e.listed(nil)
		return append([]fault.Item{problemOf(e.channel, 0, 1, message)}, others...), false
	}
	if e.channel.Disabled {
		return whole("The channel is disabled.")
	}
	c, ok := s.connectors.Get(e.channel.Connector)
	if !ok {
		return whole("This instance no longer supports the channel's platform.")
	}
	draft := connector.Draft{Account: connector.AccountOf(e.channel), Settings: settingsFor(e.channel, e.settings)}
	for _, part := range e.parts {
		var d connector.DraftPart
		if !part.tooLong {
			d.Text = part.plain
		}
		for _, m := range part.media {
			d.Media = append(d.Media, s.media(ctx, m.Medium, m.Alt))
		}
		draft.Parts = append(draft.Parts, d)
	}
	return e.listed(slices.DeleteFunc(c.Validate(draft), func(p connector.Problem) bool {
		if p.Settings || p.Part < 0 || p.Part >= len(e.parts) {
			return false
		}
		part := e.parts[p.Part]
		return part.tooLong || part.lacking && part.empty()
	}))
}

// media returns the file in the form that connectors expect. The file is opened only if the
// connector calls Open.
func (s *checker) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.MediaOf(m, alt, s.baseURL, func() (io.ReadCloser, error) {
		return metadata.Open(ctx, s.blobs, m.BlobKey(), m.Edits)
	})
}

// listed merges the problems that checkEntry found earlier with those in rules, ordered by part.
// For each part, the earlier problems come first. settings is true if any of the problems concerns
// the settings.
func (e checked) listed(rules []connector.Problem) (out []fault.Item, settings bool) {
	all := slices.Concat(e.problems, rules)
	slices.SortStableFunc(all, func(a, b connector.Problem) int { return cmp.Compare(a.Part, b.Part) })
	for _, p := range all {
		out = append(out, problemOf(e.channel, p.Part, len(e.parts), p.Message))
		settings = settings || p.Settings
	}
	return out, settings
}

// empty reports whether a part has neither visible text nor a file that was found.
func (p checkedPart) empty() bool { return publishing.Blank(p.plain) && len(p.media) == 0 }

// problemOf returns a problem with one part. If the entry has several parts, the message names the
// part.
func problemOf(c publishing.Channel, part, parts int, message string) fault.Item {
	if parts > 1 {
		message = fmt.Sprintf("Part %d: %s", part+1, message)
	}
	return fault.Item{ID: c.ID.String(), Kind: c.Connector, Name: c.Name, Message: message}
}

// entryFault returns an Invalid fault with a single problem in an entry.
func entryFault(e checked, message string) error {
	return contentFault([]fault.Item{problemOf(e.channel, 0, 1, message)})
}

// contentFault returns an Invalid fault with the given problems. There must be at least one
// problem.
func contentFault(problems []fault.Item) error {
	return &fault.Error{Kind: fault.Invalid, Op: "publishing.content", Message: problems[0].Message, Items: problems}
}

var tooLong = fmt.Sprintf("The text is longer than %d characters, markup included.", publishing.MaxText)

// settingsFor returns the settings with __type set to the platform's name, even if the client sent
// a different __type. Example: {"__type":"sandbox","reply":"all"}
func settingsFor(c publishing.Channel, settings json.RawMessage) json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &members); err != nil || members == nil {
			members = map[string]json.RawMessage{}
		}
	}
	members["__type"], _ = json.Marshal(c.Connector)
	out, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}
