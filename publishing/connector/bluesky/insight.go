package bluesky

import (
	"context"
	"net/url"
	"time"

	"crier/publishing/connector"
)

// Channel returns the account's follower, following and post counts. Bluesky reports only current
// counts, so each series has a single point, for today. If today is outside the requested range,
// Channel returns no series.
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

// Post returns a post's like, repost, reply and quote counts. Each series has a single point, for
// today. If the post was deleted or today is outside the requested range, Post returns no series.
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

// level is one statistic. value is nil if the server omitted it.
type level struct {
	label string
	value *float64
}

// levels returns a series for each value that is present, with a single point for today. If the
// range ended less than a minute ago, the point is assigned to the last day of the range, because
// midnight must have passed since the call began. Otherwise, if today is outside the range, levels
// returns nil.
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
