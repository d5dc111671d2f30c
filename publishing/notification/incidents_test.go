package notification

import (
	"maps"
	"slices"
	"testing"
	"time"

	"crier/platform/id"
	"crier/publishing"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
)

var (
	morning = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	one     = id.New[publishing.ChannelTag]()
	two     = id.New[publishing.ChannelTag]()
)

// history has the notifications of an organization in the order in which they began.
type history struct {
	org tenancy.OrgID
	all []publishing.Notification
	// now is the time of the last events.
	now time.Time
	// published counts the published posts by channel.
	published map[publishing.ChannelID]int
}

// add adds events of one channel at the given time, as one transaction does, and checks that no two
// open incidents of a channel have the same kind.
func (s *history) add(t *testing.T, at time.Time, channel publishing.ChannelID, kinds ...publishing.IncidentEventKind) {
	t.Helper()
	s.now = at
	var open []publishing.Notification
	for _, n := range s.all {
		daily := n.Kind == publishing.NotifyUnknown || n.Kind == publishing.NotifyPublished
		if daily && !n.CreatedAt.Before(at.Truncate(24*time.Hour)) || !daily && (n.ClosedAt == nil || at.Sub(*n.ClosedAt) < publishing.IncidentReopening) {
			open = append(open, n)
		}
	}
	x := newIncidents(s.org, open, at, at)
	for _, kind := range kinds {
		reason := string(kind)
		x.add(notificationstore.IncidentEvent{At: at, Kind: kind, Channel: channel, Post: id.New[publishing.PostTag](), Reason: &reason})
	}
	c := x.changes()
	s.all = slices.DeleteFunc(s.all, func(n publishing.Notification) bool { return slices.Contains(c.Deleted, n.ID) })
	for _, changed := range c.Changed {
		i := slices.IndexFunc(s.all, func(n publishing.Notification) bool { return n.ID == changed.ID })
		s.all[i] = changed
	}
	s.all = append(s.all, c.Begun...)
	if s.published == nil {
		s.published = map[publishing.ChannelID]int{}
	}
	for _, p := range c.Published {
		s.published[p.Channel] += p.Posts
	}
	seen := map[string]bool{}
	for _, n := range s.all {
		key := n.Channel.String() + string(n.Kind)
		if n.Kind == publishing.NotifyUnknown || n.Kind == publishing.NotifyPublished {
			key += n.CreatedAt.Format(time.DateOnly)
		}
		if n.ClosedAt == nil && seen[key] {
			t.Fatalf("two open incidents of the kind %s", n.Kind)
		}
		seen[key] = seen[key] || n.ClosedAt == nil
	}
}

// mailed marks all planned mails as queued at the time of the last events.
func (s *history) mailed() {
	for i := range s.all {
		if s.all[i].MailAt == nil {
			continue
		}
		posts, at := s.all[i].Posts, s.now
		s.all[i].MailAt, s.all[i].MailedPosts, s.all[i].MailedAt = nil, &posts, &at
	}
}

// shown has the fields of a notification that tests compare.
type shown struct {
	Kind   publishing.NotificationKind
	Posts  int
	Closed bool
	Mails  bool
}

func (s *history) want(t *testing.T, when string, want ...shown) {
	t.Helper()
	var got []shown
	for _, n := range s.all {
		got = append(got, shown{Kind: n.Kind, Posts: n.Posts, Closed: n.ClosedAt != nil, Mails: n.MailAt != nil})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %+v, want %+v", when, got, want)
	}
}

func TestIncidents_CountUntilTheChannelPublishes(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "failed", "failed")
	s.add(t, morning.Add(time.Hour), one, "failed")
	s.want(t, "three failures", shown{Kind: "failed", Posts: 3, Mails: true})
	if n := s.all[0]; !n.CreatedAt.Equal(morning) || !n.LastAt.Equal(morning.Add(time.Hour)) || !n.MailAt.Equal(morning.Add(publishing.IncidentMailDelay)) {
		t.Errorf("got %+v, want the times of the first and the last failure, and the mail after the first", n)
	}
	s.mailed()
	s.add(t, morning.Add(2*time.Hour), one, "published")
	s.add(t, morning.Add(3*time.Hour), one, "failed", "failed")
	s.want(t, "a success between failures", shown{Kind: "failed", Posts: 3, Closed: true},
		shown{Kind: "published", Posts: 1, Mails: true}, shown{Kind: "failed", Posts: 2, Mails: true})
	s.add(t, morning.Add(3*time.Hour), two, "failed", "missed")
	s.want(t, "another channel", shown{Kind: "failed", Posts: 3, Closed: true},
		shown{Kind: "published", Posts: 1, Mails: true}, shown{Kind: "failed", Posts: 2, Mails: true},
		shown{Kind: "failed", Posts: 1, Mails: true}, shown{Kind: "missed", Posts: 1, Mails: true})
}

func TestIncidents_EndAfterSilence(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "failed")
	s.add(t, morning.Add(publishing.IncidentSilence), one, "failed")
	s.want(t, "at the end of the silence", shown{Kind: "failed", Posts: 2, Mails: true})
	s.add(t, morning.Add(2*publishing.IncidentSilence+time.Second), one, "failed")
	s.want(t, "after it", shown{Kind: "failed", Posts: 2, Closed: true, Mails: true},
		shown{Kind: "failed", Posts: 1, Mails: true})
}

func TestIncidents_DeadChannelIsOneIncident(t *testing.T) {
	t.Parallel()
	dead := shown{Kind: "reconnect", Posts: 4, Mails: true}
	for name, events := range map[string][]publishing.IncidentEventKind{
		"refused first":      {"refused", "failed", "missed", "failed", "failed"},
		"refused last":       {"failed", "missed", "failed", "failed", "refused"},
		"refused in between": {"failed", "missed", "refused", "failed", "failed"},
		"refused twice":      {"failed", "refused", "missed", "refused", "failed", "failed"},
	} {
		s := &history{}
		s.add(t, morning, one, events...)
		s.want(t, name+", in one transaction", dead)
		s = &history{}
		for _, e := range events {
			s.add(t, morning, one, e)
		}
		s.want(t, name+", one by one", dead)
		if n := s.all[0]; n.Post.IsZero() || n.Reason == nil || *n.Reason != "refused" {
			t.Errorf("%s: got %+v, want the first post and the reason of the refusal", name, n)
		}
	}
	s := &history{}
	s.add(t, morning, one, "failed")
	s.mailed()
	s.add(t, morning.Add(time.Minute), one, "refused", "failed")
	s.want(t, "refused after people were mailed", shown{Kind: "failed", Posts: 1, Closed: true},
		shown{Kind: "reconnect", Posts: 1, Mails: true})
	s.mailed()
	s.add(t, morning.Add(100*time.Hour), one, "missed")
	s.want(t, "days later", shown{Kind: "failed", Posts: 1, Closed: true}, shown{Kind: "reconnect", Posts: 2})
	s.add(t, morning.Add(101*time.Hour), one, "connected", "failed")
	s.want(t, "connected again", shown{Kind: "failed", Posts: 1, Closed: true},
		shown{Kind: "reconnect", Posts: 2, Closed: true}, shown{Kind: "failed", Posts: 1, Mails: true})
}

func TestIncidents_FirstPostOfDeadChannelIsMailedAfterIt(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "refused")
	s.mailed()
	s.add(t, morning.Add(time.Hour), one, "refused")
	s.want(t, "no post has failed", shown{Kind: "reconnect"})
	s.add(t, morning.Add(time.Hour), one, "failed")
	s.want(t, "the first post", shown{Kind: "reconnect", Posts: 1, Mails: true})
	s.mailed()
	s.add(t, morning.Add(2*time.Hour), one, "failed")
	s.want(t, "a further one", shown{Kind: "reconnect", Posts: 2})
}

func TestIncidents_ReconnectedAtOnceNeedsNoMail(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "refused")
	s.add(t, morning.Add(10*time.Second), one, "connected")
	s.want(t, "without a post", shown{Kind: "reconnect", Closed: true})
	s = &history{}
	s.add(t, morning, one, "refused", "failed", "connected")
	s.want(t, "with a post that failed", shown{Kind: "reconnect", Posts: 1, Closed: true, Mails: true})
}

func TestIncidents_UnknownAndPublishedAreCountedByDay(t *testing.T) {
	t.Parallel()
	s := &history{org: id.New[tenancy.OrgTag]()}
	s.add(t, morning, one, "unknown", "published", "unknown", "published")
	midnight := morning.Add(15 * time.Hour)
	s.add(t, midnight.Add(-time.Second), one, "published", "unknown")
	s.want(t, "of a day", shown{Kind: "unknown", Posts: 3, Mails: true}, shown{Kind: "published", Posts: 3, Mails: true})
	if at := s.all[1].MailAt; at.Before(midnight) || at.After(midnight.Add(time.Hour)) {
		t.Errorf("the mail of a day is queued at %s, want within the hour after midnight", at)
	}
	s.add(t, midnight, one, "published", "unknown")
	s.want(t, "of two days", shown{Kind: "unknown", Posts: 3, Mails: true}, shown{Kind: "published", Posts: 3, Mails: true},
		shown{Kind: "published", Posts: 1, Mails: true}, shown{Kind: "unknown", Posts: 1, Mails: true})
}

// The published posts of a day are one notification, which names the channel if there is only one.
func TestIncidents_PublishedPostsOfSeveralChannelsAreOne(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "published", "published")
	if got := s.all[0].Channel; got != one {
		t.Errorf("got the channel %s, want that of the posts", got)
	}
	s.add(t, morning.Add(time.Hour), two, "published")
	s.add(t, morning.Add(2*time.Hour), one, "published")
	s.want(t, "two channels", shown{Kind: "published", Posts: 4, Mails: true})
	if got := s.all[0].Channel; !got.IsZero() {
		t.Errorf("got the channel %s, want none for several", got)
	}
	if want := map[publishing.ChannelID]int{one: 3, two: 1}; !maps.Equal(s.published, want) {
		t.Errorf("got the posts of channels %v, want %v", s.published, want)
	}
}

// wantMail checks when the mails about the first notification are queued. A zero time means never.
func (s *history) wantMail(t *testing.T, when string, want time.Time) {
	t.Helper()
	got := s.all[0].MailAt
	if want.IsZero() && got != nil || !want.IsZero() && (got == nil || !got.Equal(want)) {
		t.Errorf("%s: got the mails at %v, want %v", when, got, want)
	}
}

// An incident that recurs within an hour of its end is mailed about again an hour after the last
// mails, unless it ends before that without a failed post.
func TestIncidents_ReopenedIsMailedAnHourAfterTheLastMails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ begins, ends publishing.IncidentEventKind }{
		{begins: "refused", ends: "connected"},
		{begins: "failed", ends: "published"},
		{begins: "missed", ends: "connected"},
	} {
		name, s := string(c.begins), &history{}
		minute := func(n int) time.Time { return morning.Add(time.Duration(n) * time.Minute) }
		s.add(t, morning, one, c.begins)
		s.mailed()
		s.add(t, minute(20), one, c.ends)
		s.wantMail(t, name+", ended", time.Time{})
		s.add(t, minute(50), one, c.begins)
		s.wantMail(t, name+", reopened", minute(60))
		s.add(t, minute(55), one, c.ends)
		lost := minute(60)
		if c.begins == "refused" {
			lost = time.Time{}
		}
		s.wantMail(t, name+", ended again before the mails", lost)
		s.add(t, minute(57), one, c.begins)
		s.wantMail(t, name+", reopened again", minute(60))
		s.add(t, minute(61), one, c.begins)
		s.mailed()
		if n := s.all[0]; n.Reopened != 1 || n.ClosedAt != nil {
			t.Errorf("%s: got reopened %d times and closed at %v, want once and open", name, n.Reopened, n.ClosedAt)
		}
		s.add(t, minute(90), one, c.begins)
		s.wantMail(t, name+", a further event", time.Time{})
		s.add(t, minute(100), one, c.ends, c.begins)
		s.wantMail(t, name+", reopened after the second mails", minute(121))
		s.now = minute(121)
		s.mailed()
		s.add(t, minute(159), one, c.ends)
		s.add(t, minute(200), one, c.begins)
		s.wantMail(t, name+", reopened after more than an hour without mails", minute(200).Add(publishing.IncidentMailDelay))
	}
}

// The first post that fails after a channel was refused again is mailed to people who want mails
// only about posts.
func TestIncidents_FirstPostOfChannelThatDiedAgainIsMailed(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "refused", "failed")
	s.mailed()
	s.add(t, morning.Add(20*time.Minute), one, "connected", "refused")
	s.now = morning.Add(time.Hour)
	s.mailed()
	s.add(t, morning.Add(2*time.Hour), one, "failed")
	s.wantMail(t, "the first post", morning.Add(2*time.Hour+publishing.IncidentMailDelay))
	if n := s.all[0]; n.EarlierPosts != 1 || n.Posts != 2 {
		t.Errorf("got %d earlier posts of %d, want 1 of 2", n.EarlierPosts, n.Posts)
	}
	s.mailed()
	s.add(t, morning.Add(3*time.Hour), one, "failed")
	s.wantMail(t, "a further one", time.Time{})
}

// A reopened incident names the post and the reason of what happened since, which people do not
// know yet.
func TestIncidents_ReopenedNamesWhatHappenedSince(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "failed")
	s.mailed()
	known := s.all[0].Post
	old := "corrected meanwhile"
	s.all[0].Reason, s.all[0].Code = &old, &old
	s.add(t, morning.Add(20*time.Minute), one, "published")
	if n := s.all[0]; n.Post != known || n.Reason != &old {
		t.Errorf("ended: got the post %v and the reason %v, want those it had", n.Post, n.Reason)
	}
	s.add(t, morning.Add(30*time.Minute), one, "failed", "failed")
	n := s.all[0]
	if n.Post == known || n.Post.IsZero() || n.Reason == nil || *n.Reason != "failed" || n.Code != nil {
		t.Errorf("got the post %v, the reason %v and the code %v, want those of the first event since", n.Post, n.Reason, n.Code)
	}
}

// Posts that failed after their incident was reopened move to the incident of their dead channel.
// Posts that people already know about stay.
func TestIncidents_ReopenedFailuresOfDeadChannelMoveToIt(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "failed", "failed")
	s.mailed()
	s.add(t, morning.Add(10*time.Minute), one, "connected")
	s.add(t, morning.Add(20*time.Minute), one, "failed")
	s.add(t, morning.Add(21*time.Minute), one, "refused")
	s.want(t, "refused", shown{Kind: "failed", Posts: 2, Closed: true}, shown{Kind: "reconnect", Posts: 1, Mails: true})
}

// A channel whose posts alternately fail and succeed causes one incident with one mail an hour.
func TestIncidents_RecurringWithinAnHourIsOneIncident(t *testing.T) {
	t.Parallel()
	s := &history{}
	s.add(t, morning, one, "failed")
	s.mailed()
	for n := range 50 {
		s.add(t, morning.Add(time.Duration(n)*time.Minute), one, "published", "failed")
		s.add(t, morning.Add(time.Duration(n)*time.Minute), one, "published")
		s.add(t, morning.Add(time.Duration(n)*time.Minute), one, "failed", "published")
	}
	s.want(t, "by turns", shown{Kind: "failed", Posts: 101, Closed: true, Mails: true}, shown{Kind: "published", Posts: 150, Mails: true})
	s.add(t, morning.Add(49*time.Minute+publishing.IncidentReopening), one, "failed")
	s.want(t, "an hour later", shown{Kind: "failed", Posts: 101, Closed: true, Mails: true},
		shown{Kind: "published", Posts: 150, Mails: true}, shown{Kind: "failed", Posts: 1, Mails: true})
	s = &history{}
	s.add(t, morning, one, "refused")
	s.add(t, morning.Add(10*time.Second), one, "connected")
	s.add(t, morning.Add(20*time.Second), one, "refused")
	s.want(t, "refused again before anybody was mailed", shown{Kind: "reconnect", Mails: true})
}
