package notification

import (
	"slices"
	"time"

	"crier/platform/id"
	"crier/publishing"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
)

const (
	// publishedMailDelay is how long after midnight UTC the first emails about the previous day's
	// posts are queued. The emails are staggered by shard. Each shard's emails are queued
	// publishedMailStep after the previous shard's emails.
	publishedMailDelay = 5 * time.Minute
	publishedMailStep  = 10 * time.Second
)

// incidentKey identifies the incident to which an event belongs. Day is set for kinds that are
// counted per day. Channel is zero for NotifyPublished.
type incidentKey struct {
	Channel publishing.ChannelID
	Kind    publishing.NotificationKind
	Day     time.Time
}

func incidentKeyOf(kind publishing.NotificationKind, channel publishing.ChannelID, at time.Time) incidentKey {
	key := incidentKey{Channel: channel, Kind: kind}
	if kind.IsDaily() {
		key.Day = publishing.DayOf(at)
	}
	if kind == publishing.NotifyPublished {
		key.Channel = publishing.ChannelID{}
	}
	return key
}

// incidents adds events to one organization's incidents. The caller loads the incidents to which
// the events may belong, adds the events in order, and stores the changes. An incidents value is
// not safe for concurrent use.
type incidents struct {
	org           tenancy.OrgID
	now, activity time.Time
	open          map[incidentKey]*publishing.Notification
	// closed holds the incidents that ended less than IncidentReopening ago.
	closed map[incidentKey]*publishing.Notification
	stored map[publishing.NotificationID]bool
	// touched holds the incidents that were changed or begun, in order of their first change.
	// dropped holds the incidents to delete.
	touched []*publishing.Notification
	dropped []publishing.NotificationID
	// published counts the newly published posts by channel.
	published []notificationstore.ChannelPosts
}

// newIncidents returns an organization's incidents. known holds the incidents to which the events
// may belong, as returned by OpenIncidents in the store. activity is the time to store as LastAt.
// See ActivityTime in the store.
func newIncidents(org tenancy.OrgID, known []publishing.Notification, now, activity time.Time) *incidents {
	s := &incidents{
		org: org, now: now.UTC(), activity: activity.UTC(), stored: map[publishing.NotificationID]bool{},
		open: map[incidentKey]*publishing.Notification{}, closed: map[incidentKey]*publishing.Notification{},
	}
	for _, n := range known {
		in := s.open
		if n.ClosedAt != nil {
			in = s.closed
		}
		in[incidentKeyOf(n.Kind, n.Channel, n.CreatedAt)] = &n
		s.stored[n.ID] = true
	}
	return s
}

// add adds an event to its incident.
//
// An incident about failed or missed posts ends when the channel publishes again, when the channel
// is reconnected, or after IncidentSilence. While a channel must be reconnected, its failed and
// missed posts are added to the reconnect incident instead. That incident ends only when the
// channel is reconnected. Unknown outcomes and published posts are counted per day, in UTC.
func (s *incidents) add(e notificationstore.IncidentEvent) {
	switch e.Kind {
	case publishing.EventPostPublished:
		s.close(e.Channel, publishing.NotifyFailed, publishing.NotifyMissed)
		s.publish(e)
	case publishing.EventPostUnknown:
		s.count(publishing.NotifyUnknown, e)
	case publishing.EventChannelConnected:
		s.close(e.Channel, publishing.NotifyReconnect, publishing.NotifyFailed, publishing.NotifyMissed)
	case publishing.EventChannelRefused:
		s.refuse(e)
	case publishing.EventPostFailed, publishing.EventPostMissed:
		kind := publishing.NotifyFailed
		if e.Kind == publishing.EventPostMissed {
			kind = publishing.NotifyMissed
		}
		if s.open[incidentKey{Channel: e.Channel, Kind: publishing.NotifyReconnect}] != nil {
			kind = publishing.NotifyReconnect
		}
		s.count(kind, e)
	}
}

// publish adds a post to the notification about the day's published posts.
func (s *incidents) publish(e notificationstore.IncidentEvent) {
	n := s.count(publishing.NotifyPublished, e)
	if n.Channel != e.Channel {
		n.Channel = publishing.ChannelID{}
	}
	for i, p := range s.published {
		if p.Notification == n.ID && p.Channel == e.Channel {
			s.published[i].Posts++
			return
		}
	}
	s.published = append(s.published, notificationstore.ChannelPosts{Notification: n.ID, Channel: e.Channel, Posts: 1})
}

// refuse begins an incident for a channel that must be reconnected. It merges the channel's open
// incidents about failed and missed posts into the new incident if their emails are still to be
// queued. Otherwise, it closes them.
func (s *incidents) refuse(e notificationstore.IncidentEvent) {
	n := s.current(publishing.NotifyReconnect, e)
	n.Reason = e.Reason
	for _, kind := range []publishing.NotificationKind{publishing.NotifyFailed, publishing.NotifyMissed} {
		key := incidentKey{Channel: e.Channel, Kind: kind}
		other := s.open[key]
		switch {
		case other == nil:
		case other.MailAt == nil:
			s.close(e.Channel, kind)
		default:
			s.merge(n, key)
		}
	}
}

// merge moves posts from an open incident to another incident. It moves only posts that no email
// has reported yet.
func (s *incidents) merge(to *publishing.Notification, key incidentKey) {
	other := s.open[key]
	to.Posts += other.Posts - other.EarlierPosts
	if to.Post.IsZero() {
		to.Post, to.Code = other.Post, other.Code
	}
	s.mailPosts(to)
	if other.Reopened == 0 {
		s.drop(key)
		return
	}
	other.Posts = other.EarlierPosts
	s.close(key.Channel, key.Kind)
}

// count adds an event's post to the incident of the given kind and returns the incident.
func (s *incidents) count(kind publishing.NotificationKind, e notificationstore.IncidentEvent) *publishing.Notification {
	n := s.current(kind, e)
	n.Posts++
	s.mailPosts(n)
	if !n.Post.IsZero() {
		return n
	}
	n.Post, n.Code = e.Post, e.Code
	if n.Reason == nil {
		n.Reason = e.Reason
	}
	return n
}

// mailPosts schedules another email about a channel that must be reconnected, for members who want
// emails only about posts. These members are emailed only after a post has failed. If a post had
// already failed when the first emails were queued, mailPosts does nothing. After a reopening, only
// later failures count.
func (s *incidents) mailPosts(n *publishing.Notification) {
	if n.Kind != publishing.NotifyReconnect || n.MailedPosts == nil || n.MailAt != nil {
		return
	}
	if *n.MailedPosts == n.EarlierPosts && n.Posts > n.EarlierPosts {
		n.MailAt = s.mailAt(n.Kind, s.now)
	}
}

// current returns the incident of the given kind to which an event belongs. If no incident is open,
// current reopens one or begins a new one. If the open incident is over, current begins a new one.
func (s *incidents) current(kind publishing.NotificationKind, e notificationstore.IncidentEvent) *publishing.Notification {
	key := incidentKeyOf(kind, e.Channel, e.At)
	n := s.open[key]
	if n != nil && s.isOver(*n) {
		s.close(e.Channel, kind)
		delete(s.closed, key)
		n = nil
	}
	if n == nil {
		n = s.reopen(key)
	}
	if n == nil {
		n = &publishing.Notification{
			ID: id.New[publishing.NotificationTag](), Kind: kind, Channel: e.Channel, CreatedAt: e.At.UTC(),
			MailAt: s.mailAt(kind, e.At),
		}
		s.open[key] = n
	}
	n.LastAt = s.activity
	s.touch(n)
	return n
}

// reopen reopens and returns an incident that ended less than IncidentReopening ago. If there is
// none, it returns nil. If members were emailed about the incident, they are emailed again, unless
// it ends harmlessly first. The new emails are queued no earlier than IncidentReopening after the
// previous emails.
func (s *incidents) reopen(key incidentKey) *publishing.Notification {
	n := s.closed[key]
	if n == nil || s.now.Sub(*n.ClosedAt) >= publishing.IncidentReopening {
		return nil
	}
	delete(s.closed, key)
	n.ClosedAt = nil
	if n.MailedPosts != nil {
		n.Reopened++
		n.EarlierPosts, n.MailedPosts, n.MailAt = *n.MailedPosts, nil, nil
		n.Post, n.Code, n.Reason = publishing.PostID{}, nil, nil // the next event sets these
	}
	if n.MailAt == nil {
		n.MailAt = s.nextMailAt(n)
	}
	s.open[key] = n
	return n
}

// nextMailAt returns the time at which to queue the emails about a reopened incident.
func (s *incidents) nextMailAt(n *publishing.Notification) *time.Time {
	at := s.mailAt(n.Kind, s.now)
	if n.MailedAt == nil {
		return at
	}
	if next := n.MailedAt.Add(publishing.IncidentReopening); next.After(*at) {
		return &next
	}
	return at
}

// isOver reports whether an open incident has been silent for too long to accept further events.
func (s *incidents) isOver(n publishing.Notification) bool {
	return !n.Kind.IsDaily() && n.Kind != publishing.NotifyReconnect && s.now.Sub(n.LastAt) > publishing.IncidentSilence
}

// mailAt returns the time at which to queue the emails about an incident. began is the time of the
// incident's first event.
func (s *incidents) mailAt(kind publishing.NotificationKind, began time.Time) *time.Time {
	at := s.now.Add(publishing.IncidentMailDelay)
	if kind == publishing.NotifyPublished {
		step := time.Duration(tenancy.Shard(s.org)) * publishedMailStep
		at = publishing.DayOf(began).Add(24*time.Hour + publishedMailDelay + step)
	}
	return &at
}

// close ends a channel's open incidents of the given kinds. If an incident is harmless, close
// cancels any emails about it that have not been queued yet.
func (s *incidents) close(channel publishing.ChannelID, kinds ...publishing.NotificationKind) {
	for _, kind := range kinds {
		key := incidentKey{Channel: channel, Kind: kind}
		n := s.open[key]
		if n == nil {
			continue
		}
		at := s.now
		n.ClosedAt = &at
		if isHarmless(n) {
			n.MailAt = nil
		}
		delete(s.open, key)
		s.closed[key] = n
		s.touch(n)
	}
}

// isHarmless reports whether an incident that ends needs no more emails. A reopened incident whose
// new emails have not been queued yet is harmless if no post has failed since the reopening. Any
// other incident is harmless only if it is a reconnect incident without failed posts.
func isHarmless(n *publishing.Notification) bool {
	if n.Reopened > 0 && n.MailedPosts == nil {
		return n.Posts == n.EarlierPosts
	}
	return n.Kind == publishing.NotifyReconnect && n.Posts == 0
}

// drop removes an incident as if it had never begun.
func (s *incidents) drop(key incidentKey) {
	n := s.open[key]
	delete(s.open, key)
	s.touched = slices.DeleteFunc(s.touched, func(t *publishing.Notification) bool { return t == n })
	if s.stored[n.ID] {
		s.dropped = append(s.dropped, n.ID)
	}
}

func (s *incidents) touch(n *publishing.Notification) {
	if !slices.Contains(s.touched, n) {
		s.touched = append(s.touched, n)
	}
}

// changes returns the changes to store.
func (s *incidents) changes() (out notificationstore.IncidentChanges) {
	out.Deleted, out.Published = s.dropped, s.published
	for _, n := range s.touched {
		if s.stored[n.ID] {
			out.Changed = append(out.Changed, *n)
		} else {
			out.Begun = append(out.Begun, *n)
		}
	}
	return out
}
