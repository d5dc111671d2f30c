package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

var (
	errKeyBusy  = errors.New("idempotency key is being worked on")
	errKeyTaken = errors.New("idempotency key has an answer")
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
	content string
	media   []attachedMedium
	delay   time.Duration
}

type attachedMedium struct {
	publishing.Medium
	alt string
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
	for i, e := range cmd.Entries {
		entry, bad := s.entry(ctx, known, e, cmd.Type)
		if len(bad) > 0 && i > 0 && bad[0].Provider == "" {
			bad[0].Message = fmt.Sprintf("Entry %d: %s", i+1, bad[0].Message)
		}
		problems = append(problems, bad...)
		out = append(out, entry)
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
	if u.Host != "" && (u.Host != base.Host || u.Scheme != base.Scheme) {
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
		return checked{}, []fault.Channel{{Integration: e.Integration, Message: fmt.Sprintf("There is no channel with the id %q.", e.Integration)}}
	}
	out := checked{channel: channel, settings: e.Settings, group: trimmed(e.Group)}
	var problems []fault.Channel
	for i, v := range e.Value {
		part := checkedPart{id: trimmed(v.ID), content: publishing.Sanitize(v.Content), delay: time.Duration(v.Delay) * time.Minute}
		for _, m := range v.Image {
			medium, problem := s.medium(known, m)
			if problem != "" {
				problems = append(problems, problemOf(channel, i, len(e.Value), problem))
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
		if e.parts[0].content == "" && len(e.parts[0].media) == 0 {
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
			return publishing.Medium{}, fmt.Sprintf("The file %q is not on this service: upload it first with /upload-from-url.", m.URL)
		}
		if medium, ok := known.byKey[key]; ok {
			return medium, ""
		}
		return publishing.Medium{}, fmt.Sprintf("There is no file at %q.", m.URL)
	}
	if medium, ok := known.byID[strings.ToLower(m.ID)]; ok {
		return medium, ""
	}
	return publishing.Medium{}, fmt.Sprintf("There is no file with the id %q.", m.ID)
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
	draft := connector.Draft{Account: account(e.channel), Settings: settingsFor(e.channel, e.settings)}
	for _, part := range e.parts {
		d := connector.DraftPart{Text: publishing.PlainText(part.content)}
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

// write stores everything in one transaction, the idempotency row first.
func (s *Posts) write(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked) (out publishing.CreateResult, due *time.Time, err error) {
	err = s.store.InOrg(ctx, p.Org, func(tx *publishingstore.Tx) error {
		out, due = publishing.CreateResult{}, nil
		plans, err := s.plan(ctx, tx, p, cmd, entries)
		if err != nil {
			return err
		}
		answers := make([]answer, len(plans))
		for i, pl := range plans {
			answers[i] = answer{pl.posts[0].ID, pl.posts[0].Channel}
			out.Created = append(out.Created, publishing.Created{Post: pl.posts[0].ID, Channel: pl.posts[0].Channel})
		}
		if err := remember(ctx, tx, cmd, answers); err != nil {
			return err
		}
		var fresh []publishingstore.NewPost
		for _, pl := range plans {
			if pl.old == nil {
				fresh = append(fresh, pl.posts...)
				continue
			}
			if err := tx.Rewrite(ctx, pl.posts[0].Group, pl.old, pl.posts); err != nil {
				return err
			}
		}
		due = wakeAt(s, plans)
		if len(fresh) == 0 {
			return nil
		}
		return tx.Insert(ctx, fresh)
	})
	return out, due, err
}

func remember(ctx context.Context, tx *publishingstore.Tx, cmd publishing.CreatePosts, answers []answer) error {
	if cmd.IdempotencyKey == "" {
		return nil
	}
	body, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	busy, taken, err := tx.Remember(ctx, cmd.IdempotencyKey, cmd.RequestHash, http.StatusCreated, body)
	switch {
	case err != nil:
		return err
	case busy:
		return errKeyBusy
	case taken:
		return errKeyTaken
	default:
		return nil
	}
}

// plan is what is written for one entry: new posts, or the new content of an old group.
type plan struct {
	posts []publishingstore.NewPost // root first
	old   []publishingstore.Standing
}

func wakeAt(s *Posts, plans []plan) (first *time.Time) {
	now := s.deps.Clock.Now()
	for _, pl := range plans {
		root := pl.posts[0]
		if root.State != publishing.StateQueue {
			continue
		}
		at := now
		if root.Due != nil {
			at = *root.Due
		}
		if first == nil || at.Before(*first) {
			first = &at
		}
	}
	return first
}

func (s *Posts) plan(ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked) ([]plan, error) {
	out := make([]plan, 0, len(entries))
	seen := map[publishing.GroupID]bool{}
	for _, e := range entries {
		group, found, err := existing(ctx, tx, e)
		if err != nil {
			return nil, err
		}
		if seen[group] && found {
			return nil, contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "Two entries replace the same post.")})
		}
		seen[group] = true
		if cmd.Type == publishing.CreateUpdate && !found {
			return nil, contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "There is no post to update: name its group, or its id in value[0].id.")})
		}
		pl := plan{}
		state := stateOf(cmd.Type)
		root := id.New[publishing.PostTag]()
		if found {
			if pl.old, err = tx.LockGroup(ctx, group); err != nil {
				return nil, err
			}
			if err := movable(pl.old, cmd.Republish); err != nil {
				return nil, err
			}
			oldRoot, problem := rootOf(pl.old, e.channel)
			if problem != "" {
				return nil, contentFault([]fault.Channel{problemOf(e.channel, 0, 1, problem)})
			}
			root = oldRoot.ID
			if cmd.Type == publishing.CreateUpdate {
				state = keptState(oldRoot.State)
			}
		} else {
			group = id.New[publishing.GroupTag]()
		}
		pl.posts = s.build(p, cmd, e, root, group, state)
		out = append(out, pl)
	}
	return out, nil
}

func stateOf(t publishing.CreateType) publishing.State {
	if t == publishing.CreateDraft {
		return publishing.StateDraft
	}
	return publishing.StateQueue
}

// keptState is the state of an updated post: what had failed is a draft again, so that it does not go out unasked.
func keptState(s publishing.State) publishing.State {
	if s == publishing.StateQueue {
		return s
	}
	return publishing.StateDraft
}

func rootOf(posts []publishingstore.Standing, channel publishing.Channel) (publishingstore.Standing, string) {
	for _, p := range posts {
		if p.After.IsZero() {
			if p.Channel != channel.ID {
				return p, "The group belongs to a post of another channel."
			}
			return p, ""
		}
	}
	return publishingstore.Standing{}, "There is no such post any more."
}

// existing finds the group that an entry replaces: by its group, or by the id of any part. An id that names nothing, or a part of another group, is the entry's fault.
func existing(ctx context.Context, tx *publishingstore.Tx, e checked) (group publishing.GroupID, found bool, err error) {
	unknown := contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "There is no such post or group to replace.")})
	if e.group != "" {
		parsed, ok := id.Parse[publishing.GroupTag](e.group)
		if !ok {
			return group, false, unknown
		}
		posts, err := tx.LockGroup(ctx, parsed)
		if err == nil && len(posts) == 0 {
			err = unknown
		}
		if err != nil {
			return group, false, err
		}
		group = parsed
	}
	for _, part := range e.parts {
		if part.id == "" {
			continue
		}
		parsed, ok := id.Parse[publishing.PartTag](part.id)
		if !ok {
			return group, false, unknown
		}
		of, err := tx.GroupOfPart(ctx, parsed)
		if pg.IsNoRows(err) || err == nil && !group.IsZero() && of != group {
			return group, false, unknown
		}
		if err != nil {
			return group, false, err
		}
		group = of
	}
	return group, !group.IsZero(), nil
}

// build cuts the parts into a root and, wherever a part has a delay, a follower that waits for the run before it.
func (s *Posts) build(p tenancy.Principal, cmd publishing.CreatePosts, e checked, root publishing.PostID, group publishing.GroupID, state publishing.State) []publishingstore.NewPost {
	base := publishing.Post{Org: p.Org, Group: group, Channel: e.channel.ID, State: state, Settings: settingsFor(e.channel, e.settings), CreationMethod: cmd.Method}
	if cmd.Type != publishing.CreateNow {
		base.PublishDate = cmd.Date
		base.Due = &cmd.Date
	}
	first := base
	first.ID = root
	out := []publishingstore.NewPost{{Post: first, By: by(p)}}
	used := map[publishing.PartID]bool{}
	for i, part := range e.parts {
		if part.delay > 0 {
			next := base
			next.ID, next.After, next.Delay, next.Due = id.New[publishing.PostTag](), out[len(out)-1].ID, part.delay, nil
			next.State = publishing.StateWaiting
			out = append(out, publishingstore.NewPost{Post: next, By: by(p)})
		}
		last := &out[len(out)-1]
		written := publishing.Part{ID: id.New[publishing.PartTag](), Position: i, Content: part.content}
		if kept, ok := keptID(part, i, root); ok && len(out) == 1 && !used[kept] {
			written.ID = kept
		}
		used[written.ID] = true
		for _, m := range part.media {
			written.Media = append(written.Media, publishing.Attachment{Media: m.ID, Alt: m.alt})
		}
		last.Parts = append(last.Parts, written)
	}
	return out
}

// keptID is the id that a part of the root keeps: the first part has its post's, others the one that was sent again. Followers are new posts, whose parts have sent nothing yet.
func keptID(part checkedPart, index int, root publishing.PostID) (publishing.PartID, bool) {
	if index == 0 {
		return id.FromUUID[publishing.PartTag](root.UUID()), true
	}
	return id.Parse[publishing.PartTag](part.id)
}
