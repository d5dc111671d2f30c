package bluesky

import (
	"context"
	"net/url"
	"time"

	"crier/publishing/connector"
)

// Channel returns how many followers, followed accounts and posts the account has. Bluesky reports
// only current numbers, so each series has a single point, for today. Channel returns no series if
// today is outside the range.
func (c *Connector) Channel(
	ctx context.Context, s *connector.Session, since, until time.Time,
) ([]connector.Series, error) {
	var profile struct {
		FollowersCount, FollowsCount, PostsCount *float64
	}
	cred, err := readCredential(s)
	if err != nil {
		return nil, err
	}
	err = cred.client(s.Env).query(ctx, "app.bsky.actor.getProfile", url.Values{"actor": {cred.DID}}, &profile)
	if err != nil {
		return nil, err
	}
	return levels(s.Clock.Now(), since, until, []level{
		{"Followers", profile.FollowersCount}, {"Following", profile.FollowsCount}, {"Posts", profile.PostsCount},
	}), nil
}

// Post returns how many likes, reposts, replies and quotes a post has, each as a series with a
// single point for today. It returns no series for a deleted post or if today is outside the range.
func (c *Connector) Post(
	ctx context.Context, s *connector.Session, ref connector.Ref, since, until time.Time,
) ([]connector.Series, error) {
	var found struct {
		Posts []struct {
			URI                                            string
			LikeCount, RepostCount, ReplyCount, QuoteCount *float64
		}
	}
	cred, err := readCredential(s)
	if err != nil {
		return nil, err
	}
	err = cred.client(s.Env).query(ctx, "app.bsky.feed.getPosts", url.Values{"uris": {ref.ID}}, &found)
	if err != nil {
		return nil, err
	}
	for _, p := range found.Posts {
		if p.URI == ref.ID {
			return levels(s.Clock.Now(), since, until, []level{
				{"Likes", p.LikeCount}, {"Reposts", p.RepostCount}, {"Replies", p.ReplyCount}, {"Quotes", p.QuoteCount},
			}), nil
		}
	}
	return nil, nil
}

// level is a number that the server may omit.
type level struct {
	label string
	value *float64
}

// levels returns a series for each number that is present, with a point for today if today is in
// the range. Within a minute after the end of the range, the point belongs to the last day, because
// midnight has passed since the call began.
func levels(now, since, until time.Time, all []level) []connector.Series {
	today := now.UTC().Truncate(24 * time.Hour)
	if end := until.Add(24 * time.Hour); today.Equal(end) && now.Sub(end) < time.Minute {
		today = until
	}
	if today.Before(since) || today.After(until) {
		return nil
	}
	var out []connector.Series
	for _, l := range all {
		if l.value != nil {
			points := []connector.Point{{Day: today, Value: *l.value}}
			out = append(out, connector.Series{Label: l.label, Level: true, Points: points})
		}
	}
	return out
}
