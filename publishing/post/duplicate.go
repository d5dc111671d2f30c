package post

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// refuseDuplicates returns Conflict if cmd.NoDuplicates is set and a new post duplicates a stored
// post or an earlier post in the command. Duplicates are on the same channel, have the same text in
// the first part, and are less than publishing.DuplicateTime apart. The fault has an item for each
// duplicate in the command. Posts without text and failed posts are not compared.
//
// It runs before the transaction, so two concurrent commands can both pass. This is acceptable,
// because the check only guards against clients that repeat themselves.
func (s *Posts) refuseDuplicates(
	ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked,
) error {
	const op = "publishing.refuseDuplicates"
	if !cmd.NoDuplicates {
		return nil
	}
	dates, q := s.datesOf(cmd), poststore.SameText{}
	var sent []poststore.TextOfPost
	for i, e := range entries {
		words := e.parts[0].content.Text
		if e.group != "" || publishing.Blank(e.parts[0].plain) {
			continue
		}
		sent = append(sent, poststore.TextOfPost{Channel: e.channel.ID, Date: dates[i], Text: words})
		q.Add(e.channel.ID, words, dates[i].Add(-publishing.DuplicateTime), dates[i].Add(publishing.DuplicateTime))
	}
	if len(sent) == 0 {
		return nil
	}
	known, err := q.Find(ctx, s.db, p.Org)
	if err != nil {
		return pg.Fault(op, err)
	}
	var items []fault.Item
	for i, x := range sent {
		if sameText(append(sent[:i:i], known...), x) {
			items = append(items, fault.Item{ID: x.Channel.String(), Kind: channelOf(entries, x.Channel).Connector, Message: duplicate})
		}
	}
	if len(items) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.Conflict, Op: op, Message: duplicate, Items: items}
}

const duplicate = "The channel already has a post with the same text within a day of this one."

// sameText reports whether one of the posts is a duplicate of x.
func sameText(posts []poststore.TextOfPost, x poststore.TextOfPost) bool {
	for _, other := range posts {
		if other.Channel == x.Channel && other.Text == x.Text && between(other.Date, x.Date) < publishing.DuplicateTime {
			return true
		}
	}
	return false
}

func between(a, b time.Time) time.Duration { return a.Sub(b).Abs() }

func channelOf(entries []checked, channel publishing.ChannelID) publishing.Channel {
	for _, e := range entries {
		if e.channel.ID == channel {
			return e.channel
		}
	}
	return publishing.Channel{}
}
