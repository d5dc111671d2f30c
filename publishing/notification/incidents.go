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
	// publishedMailDelay is the time after midnight UTC from which the mails about a day's posts are queued. They are
	// spread by the shards of the organizations, publishedMailStep for each.
	publishedMailDelay = 5 * time.Minute
	publishedMailStep  = 10 * time.Second
)

// incidentKey identifies the incident that takes an event. Day is set for the kinds that are counted by the day, and
// Channel is zero for NotifyPublished.
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

// incidents adds events to the incidents of one organization. The caller loads those that may take the events, adds the
// events in their order, and stores the changes. It is not safe for concurrent use.
type incidents struct {
	org           tenancy.OrgID
	now, activity time.Time
	open          map[incidentKey]*publishing.Notification
	// closed are those that ended within IncidentReopening.
	closed map[incidentKey]*publishing.Notification
	stored map[publishing.NotificationID]bool
	// touched are the incidents that were changed or begun, in this order; dropped are those to be deleted.
	touched []*publishing.Notification
	dropped []publishing.NotificationID
	// published are the posts by their channels, of those that were added.
	published []notificationstore.ChannelPosts
}

// newIncidents returns the incidents of an organization. known are the stored ones of the channels of the events that
// are open or ended within IncidentReopening, in the order of their ids, and those of the days of the events. activity is now,
// or a later time that is after Notification.LastAt of all notifications of the organization.
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

// add adds an event.
//
// An incident of failed or missed posts ends when the channel publishes again or is connected again, and after
// IncidentSilence. While a channel must be connected again, its failed and missed posts are counted in that incident,
// which ends only with the connection. Unknown outcomes and published posts are counted by the day, in UTC.
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

// publish adds a post to those of its day.
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

// refuse begins the incident of a channel that must be connected again. What the channel's posts have begun and nobody
// was mailed about becomes a part of it.
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

// merge moves the posts of an open incident that nobody was mailed about to another incident.
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

// count adds the post of an event to the incident of a kind that takes it, and returns that.
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

// mailPosts plans the further mails of a channel that must be connected again, to those who want mails about posts only:
// no post had failed when the first mails were queued, since the channel was refused last.
func (s *incidents) mailPosts(n *publishing.Notification) {
	if n.Kind != publishing.NotifyReconnect || n.MailedPosts == nil || n.MailAt != nil {
		return
	}
	if *n.MailedPosts == n.EarlierPosts && n.Posts > n.EarlierPosts {
		n.MailAt = s.mailAt(n.Kind, s.now)
	}
}

// current returns the incident of a kind that takes an event, which it begins if there is none, or if that is over.
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
			ID: id.New[publishing.NotificationTag](), Kind: kind, Channel: e.Channel, CreatedAt: e.At.UTC(), MailAt: s.mailAt(kind, e.At),
		}
		s.open[key] = n
	}
	n.LastAt = s.activity
	s.touch(n)
	return n
}

// reopen returns the incident that ended a short time ago, open again, or nil. People who were mailed about it are mailed
// once more IncidentReopening after that, unless it ends before and isHarmless.
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
		n.Post, n.Code, n.Reason = publishing.PostID{}, nil, nil // of the next event
	}
	if n.MailAt == nil {
		n.MailAt = s.nextMailAt(n)
	}
	s.open[key] = n
	return n
}

// nextMailAt returns when the mails of an incident that goes on are queued.
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

// isOver reports whether an open incident takes no further event.
func (s *incidents) isOver(n publishing.Notification) bool {
	return !n.Kind.IsDaily() && n.Kind != publishing.NotifyReconnect && s.now.Sub(n.LastAt) > publishing.IncidentSilence
}

// mailAt returns when the mails of an incident are queued that an event of some time begins.
func (s *incidents) mailAt(kind publishing.NotificationKind, began time.Time) *time.Time {
	at := s.now.Add(publishing.IncidentMailDelay)
	if kind == publishing.NotifyPublished {
		step := time.Duration(tenancy.Shard(s.org)) * publishedMailStep
		at = publishing.DayOf(began).Add(24*time.Hour + publishedMailDelay + step)
	}
	return &at
}

// close ends the open incidents of some kinds. One that was harmless needs no mail that is not queued yet.
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

// isHarmless reports whether no post has failed since people were mailed last, or at all when nobody was.
func isHarmless(n *publishing.Notification) bool {
	if n.Reopened > 0 && n.MailedPosts == nil {
		return n.Posts == n.EarlierPosts
	}
	return n.Kind == publishing.NotifyReconnect && n.Posts == 0
}

// drop removes an incident, as if it had not been.
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

// changes returns what the events have changed.
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
