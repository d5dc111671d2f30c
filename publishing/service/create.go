package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// checked is one entry with everything that it refers to found.
type checked struct {
	channel  publishing.Channel
	settings json.RawMessage
	parts    []checkedPart
	group    string // existing group, as sent
}

type checkedPart struct {
	id      string // existing part, as sent
	content publishing.Content
	plain   string // the same as a platform without markup gets it
	media   []attachedMedium
	delay   time.Duration
}

type attachedMedium struct {
	publishing.Medium
	alt string
}

var tooLong = fmt.Sprintf("The text is longer than %d characters, markup included.", publishing.MaxText)

// quoted is what a client sent, for a sentence: on one line and not too long, as people read it.
func quoted(sent string) string {
	const longest = 100
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || connector.Hidden(r) {
			return ' '
		}
		return r
	}, sent)
	if runes := []rune(line); len(runes) > longest {
		line = string(runes[:longest]) + "…"
	}
	return `"` + line + `"`
}

func contentFault(problems []fault.Channel) error {
	return &fault.Error{Kind: fault.Invalid, Op: "publishing.content", Message: problems[0].Message, Channels: problems}
}

// resolve finds channels and media of every entry and applies the channels' rules, gathering all faults.
func (s *Posts) resolve(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) ([]checked, error) {
	known, err := s.lookup(ctx, p, cmd)
	if err != nil {
		return nil, internal("publishing.resolve", err)
	}
	var out []checked
	var problems []fault.Channel
	texts := 0
	for i, e := range cmd.Entries {
		entry, bad := s.entry(ctx, known, e, cmd.Type)
		if ctx.Err() != nil {
			return nil, fault.Wrap(fault.TooLarge, "publishing.resolve", "To check these posts takes longer than a request may: send fewer at once.", ctx.Err())
		}
		for _, part := range entry.parts {
			texts += len(part.content.Text)
		}
		if len(bad) > 0 && i > 0 && bad[0].Provider == "" {
			bad[0].Message = fmt.Sprintf("Entry %d: %s", i+1, bad[0].Message)
		}
		problems = append(problems, bad...)
		out = append(out, entry)
		if len(problems) > fault.MaxTold {
			break // one more than is told, so that the answer says that there are others
		}
	}
	if len(problems) == 0 && texts > publishing.MaxAllTexts {
		return nil, &fault.Error{Kind: fault.Invalid, Op: "publishing.resolve", Message: "The post is not valid.",
			Fields: []fault.Field{{Name: "posts", Message: fmt.Sprintf("must hold at most %d bytes of text in all, markup included", publishing.MaxAllTexts)}}}
	}
	if len(problems) > 0 {
		return nil, contentFault(problems)
	}
	return out, nil
}

type catalogue struct {
	channels map[string]publishing.Channel
	byID     map[string]publishing.Medium
	byKey    map[string]publishing.Medium
}

func (s *Posts) lookup(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (catalogue, error) {
	var channels []publishing.ChannelID
	var media []publishing.MediaID
	keys := []string{}
	for _, e := range cmd.Entries {
		if c, ok := id.Parse[publishing.ChannelTag](e.Integration); ok {
			channels = append(channels, c)
		}
		for _, v := range e.Value {
			for _, m := range v.Image {
				if key, ours := s.keyOf(m.URL); ours {
					keys = append(keys, key)
				} else if parsed, ok := id.Parse[publishing.MediaTag](m.ID); ok && m.URL == "" {
					media = append(media, parsed)
				}
			}
		}
	}
	k, err := s.store.Lookup(ctx, p.Org, channels, media, keys)
	out := catalogue{map[string]publishing.Channel{}, map[string]publishing.Medium{}, map[string]publishing.Medium{}}
	for _, c := range k.Channels {
		out.channels[c.ID.String()] = c
	}
	for _, m := range k.Media {
		out.byID[m.ID.String()], out.byKey[m.Key] = m, m
	}
	return out, err
}

// keyOf reads the media key from an address that this instance serves.
func (s *Posts) keyOf(raw string) (string, bool) {
	u, err := url.Parse(raw)
	base, baseErr := url.Parse(s.cfg.BaseURL)
	if err != nil || baseErr != nil || raw == "" {
		return "", false
	}
	if u.Host != "" && (!strings.EqualFold(u.Host, base.Host) || u.Scheme != base.Scheme) {
		return "", false
	}
	path := strings.Split(strings.TrimPrefix(u.Path, strings.TrimRight(base.Path, "/")), "/")
	if len(path) != 4 || path[0] != "" || path[1] != "files" {
		return "", false
	}
	return path[2], true
}

func (s *Posts) entry(ctx context.Context, known catalogue, e publishing.CreateEntry, t publishing.CreateType) (checked, []fault.Channel) {
	channel, ok := known.channels[strings.ToLower(e.Integration)]
	if !ok {
		return checked{}, []fault.Channel{{Integration: e.Integration, Message: "There is no channel with the id " + quoted(e.Integration) + "."}}
	}
	out := checked{channel: channel, settings: e.Settings, group: trimmed(e.Group)}
	var problems []fault.Channel
	for i, v := range e.Value {
		part := checkedPart{id: trimmed(v.ID), content: publishing.ReadContent(v.Content, v.Type), delay: time.Duration(v.Delay) * time.Minute}
		part.plain = part.content.Plain()
		if utf8.RuneCountInString(part.content.Text) > publishing.MaxText {
			problems = append(problems, problemOf(channel, i, len(e.Value), tooLong))
		}
		for _, m := range v.Image {
			medium, problem := s.medium(known, m)
			if problem != "" {
				if len(problems) <= fault.MaxTold {
					problems = append(problems, problemOf(channel, i, len(e.Value), problem))
				}
				continue
			}
			part.media = append(part.media, attachedMedium{medium, m.Alt})
		}
		out.parts = append(out.parts, part)
	}
	if len(problems) == 0 {
		problems = s.entryRules(ctx, out, t)
	}
	return out, problems
}

func (s *Posts) entryRules(ctx context.Context, e checked, t publishing.CreateType) []fault.Channel {
	if t == publishing.CreateDraft {
		if first := e.parts[0]; publishing.Blank(first.plain) && len(first.media) == 0 {
			return []fault.Channel{problemOf(e.channel, 0, 1, "The draft is empty: write a text or add an image or video.")}
		}
		return nil
	}
	return s.check(ctx, e)
}

func (s *Posts) medium(known catalogue, m publishing.CreateImage) (publishing.Medium, string) {
	if m.URL != "" {
		key, ours := s.keyOf(m.URL)
		if !ours {
			return publishing.Medium{}, "The file " + quoted(m.URL) + " is not on this service: upload it first with POST /upload."
		}
		if medium, ok := known.byKey[key]; ok {
			return medium, ""
		}
		return publishing.Medium{}, "There is no file at " + quoted(m.URL) + "."
	}
	if medium, ok := known.byID[strings.ToLower(m.ID)]; ok {
		return medium, ""
	}
	return publishing.Medium{}, "There is no file with the id " + quoted(m.ID) + "."
}

// check applies the channel's state and its platform's rules.
func (s *Posts) check(ctx context.Context, e checked) []fault.Channel {
	if e.channel.Disabled {
		return []fault.Channel{problemOf(e.channel, 0, 1, "The channel is disabled.")}
	}
	c, ok := s.deps.Connectors.Get(e.channel.Connector)
	if !ok {
		return []fault.Channel{problemOf(e.channel, 0, 1, "This instance does not offer the platform of this channel any more.")}
	}
	draft := connector.Draft{Account: connector.AccountOf(e.channel), Settings: settingsFor(e.channel, e.settings)}
	for _, part := range e.parts {
		d := connector.DraftPart{Text: part.plain}
		for _, m := range part.media {
			d.Media = append(d.Media, s.media(ctx, m.Medium, m.alt))
		}
		draft.Parts = append(draft.Parts, d)
	}
	var out []fault.Channel
	for _, p := range c.Validate(draft) {
		out = append(out, problemOf(e.channel, p.Part, len(e.parts), p.Message))
	}
	return out
}

func problemOf(c publishing.Channel, part, parts int, message string) fault.Channel {
	if parts > 1 {
		message = fmt.Sprintf("Part %d: %s", part+1, message)
	}
	return fault.Channel{Integration: c.ID.String(), Provider: c.Connector, Name: c.Name, Message: message}
}

// settingsFor puts the platform's name into the settings, whatever the client wrote there.
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
