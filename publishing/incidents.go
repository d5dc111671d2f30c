package publishing

import (
	"slices"
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// IncidentEventKind is what has happened to a post or a channel. A CHECK constraint of the table has the same list.
type IncidentEventKind string

// The kinds of events. EventChannelRefused and EventChannelConnected are of a channel, the others of a post.
const (
	EventPostFailed    IncidentEventKind = "failed"
	EventPostMissed    IncidentEventKind = "missed"
	EventPostUnknown   IncidentEventKind = "unknown"
	EventPostPublished IncidentEventKind = "published"
	// EventChannelRefused means that the platform has refused the credential, EventChannelConnected that the channel was
	// connected again or disconnected by a person.
	EventChannelRefused   IncidentEventKind = "refused"
	EventChannelConnected IncidentEventKind = "connected"
)

// IncidentEventKinds returns all kinds of events.
func IncidentEventKinds() []IncidentEventKind {
	return []IncidentEventKind{
		EventPostFailed, EventPostMissed, EventPostUnknown, EventPostPublished, EventChannelRefused, EventChannelConnected,
	}
}

// IncidentEvent is one event, which becomes a part of an incident.
type IncidentEvent struct {
	ID      int64             `db:"id"`
	At      time.Time         `db:"at"`
	Kind    IncidentEventKind `db:"kind"`
	Channel ChannelID         `db:"channel_id"`
	// Post is zero for an event of the channel.
	Post PostID `db:"post_id"`
	// Code and Reason are those of the post that failed. Reason is for people.
	Code   *string `db:"code"`
	Reason *string `db:"reason"`
}

const (
	// IncidentMailDelay is how long after an incident has begun its mails are queued, so that they name what came with it.
	IncidentMailDelay = 30 * time.Second
	// IncidentSilence ends an incident of failed or missed posts that has no further event.
	IncidentSilence = 24 * time.Hour
	// IncidentReopening is how long after its end an incident of a channel goes on with the next event of its kind. It is
	// also the shortest time between the mails about an incident and those about its going on.
	IncidentReopening = time.Hour
	// publishedMailDelay is the time after midnight UTC from which the mails about a day's posts are queued. They are
	// spread by the shards of the organizations, publishedMailStep for each.
	publishedMailDelay = 5 * time.Minute
	publishedMailStep  = 10 * time.Second
)

// incidentKey identifies the incident that takes an event. Day is set for the kinds that are counted by the day, and
// Channel is zero for NotifyPublished.
type incidentKey struct {
	Channel ChannelID
	Kind    NotificationKind
	Day     time.Time
}

func incidentKeyOf(kind NotificationKind, channel ChannelID, at time.Time) incidentKey {
	key := incidentKey{Channel: channel, Kind: kind}
	if kind.isDaily() {
		key.Day = dayOf(at)
	}
	if kind == NotifyPublished {
		key.Channel = ChannelID{}
	}
	return key
}

// ChannelPosts are posts of a channel that a notification of several channels counts.
type ChannelPosts struct {
	Notification NotificationID
	Channel      ChannelID
	Posts        int
}

// Incidents adds events to the incidents of one organization. The caller loads those that may take the events, adds the
// events in their order, and stores Changes. It is not safe for concurrent use.
type Incidents struct {
	org           tenancy.OrgID
	now, activity time.Time
	open          map[incidentKey]*Notification
	// closed are those that ended within IncidentReopening.
	closed map[incidentKey]*Notification
	stored map[NotificationID]bool
	// touched are the incidents that were changed or begun, in this order; dropped are those to be deleted.
	touched []*Notification
	dropped []NotificationID
	// published are the posts by their channels, of those that were added.
	published []ChannelPosts
}

// NewIncidents returns the incidents of an organization. known are the stored ones of the channels of the events that
// are open or ended within IncidentReopening, in the order of their ids, and those of the days of the events. activity is now,
// or a later time that is after Notification.LastAt of all notifications of the organization.
func NewIncidents(org tenancy.OrgID, known []Notification, now, activity time.Time) *Incidents {
	s := &Incidents{
		org: org, now: now.UTC(), activity: activity.UTC(), stored: map[NotificationID]bool{},
		open: map[incidentKey]*Notification{}, closed: map[incidentKey]*Notification{},
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

// Add adds an event.
//
// An incident of failed or missed posts ends when the channel publishes again or is connected again, and after
// IncidentSilence. While a channel must be connected again, its failed and missed posts are counted in that incident,
// which ends only with the connection. Unknown outcomes and published posts are counted by the day, in UTC.
func (s *Incidents) Add(e IncidentEvent) {
	switch e.Kind {
	case EventPostPublished:
		s.close(e.Channel, NotifyFailed, NotifyMissed)
		s.publish(e)
	case EventPostUnknown:
		s.count(NotifyUnknown, e)
	case EventChannelConnected:
		s.close(e.Channel, NotifyReconnect, NotifyFailed, NotifyMissed)
	case EventChannelRefused:
		s.refuse(e)
	case EventPostFailed, EventPostMissed:
		kind := NotifyFailed
		if e.Kind == EventPostMissed {
			kind = NotifyMissed
		}
		if s.open[incidentKey{Channel: e.Channel, Kind: NotifyReconnect}] != nil {
			kind = NotifyReconnect
		}
		s.count(kind, e)
	}
}

// publish adds a post to those of its day.
func (s *Incidents) publish(e IncidentEvent) {
	n := s.count(NotifyPublished, e)
	if n.Channel != e.Channel {
		n.Channel = ChannelID{}
	}
	for i, p := range s.published {
		if p.Notification == n.ID && p.Channel == e.Channel {
			s.published[i].Posts++
			return
		}
	}
	s.published = append(s.published, ChannelPosts{Notification: n.ID, Channel: e.Channel, Posts: 1})
}

// refuse begins the incident of a channel that must be connected again. What the channel's posts have begun and nobody
// was mailed about becomes a part of it.
func (s *Incidents) refuse(e IncidentEvent) {
	n := s.current(NotifyReconnect, e)
	n.Reason = e.Reason
	for _, kind := range []NotificationKind{NotifyFailed, NotifyMissed} {
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
func (s *Incidents) merge(to *Notification, key incidentKey) {
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
func (s *Incidents) count(kind NotificationKind, e IncidentEvent) *Notification {
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
func (s *Incidents) mailPosts(n *Notification) {
	if n.Kind != NotifyReconnect || n.MailedPosts == nil || n.MailAt != nil {
		return
	}
	if *n.MailedPosts == n.EarlierPosts && n.Posts > n.EarlierPosts {
		n.MailAt = s.mailAt(n.Kind, s.now)
	}
}

// current returns the incident of a kind that takes an event, which it begins if there is none, or if that is over.
func (s *Incidents) current(kind NotificationKind, e IncidentEvent) *Notification {
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
		n = &Notification{
			ID: id.New[NotificationTag](), Kind: kind, Channel: e.Channel, CreatedAt: e.At.UTC(), MailAt: s.mailAt(kind, e.At),
		}
		s.open[key] = n
	}
	n.LastAt = s.activity
	s.touch(n)
	return n
}

// reopen returns the incident that ended a short time ago, open again, or nil. People who were mailed about it are mailed
// once more IncidentReopening after that, unless it ends before and isHarmless.
func (s *Incidents) reopen(key incidentKey) *Notification {
	n := s.closed[key]
	if n == nil || s.now.Sub(*n.ClosedAt) >= IncidentReopening {
		return nil
	}
	delete(s.closed, key)
	n.ClosedAt = nil
	if n.MailedPosts != nil {
		n.Reopened++
		n.EarlierPosts, n.MailedPosts, n.MailAt = *n.MailedPosts, nil, nil
		n.Post, n.Code, n.Reason = PostID{}, nil, nil // of the next event
	}
	if n.MailAt == nil {
		n.MailAt = s.nextMailAt(n)
	}
	s.open[key] = n
	return n
}

// nextMailAt returns when the mails of an incident that goes on are queued.
func (s *Incidents) nextMailAt(n *Notification) *time.Time {
	at := s.mailAt(n.Kind, s.now)
	if n.MailedAt == nil {
		return at
	}
	if next := n.MailedAt.Add(IncidentReopening); next.After(*at) {
		return &next
	}
	return at
}

// isOver reports whether an open incident takes no further event.
func (s *Incidents) isOver(n Notification) bool {
	return !n.Kind.isDaily() && n.Kind != NotifyReconnect && s.now.Sub(n.LastAt) > IncidentSilence
}

// mailAt returns when the mails of an incident are queued that an event of some time begins.
func (s *Incidents) mailAt(kind NotificationKind, began time.Time) *time.Time {
	at := s.now.Add(IncidentMailDelay)
	if kind == NotifyPublished {
		at = dayOf(began).Add(24*time.Hour + publishedMailDelay + time.Duration(tenancy.Shard(s.org))*publishedMailStep)
	}
	return &at
}

// close ends the open incidents of some kinds. One that was harmless needs no mail that is not queued yet.
func (s *Incidents) close(channel ChannelID, kinds ...NotificationKind) {
	for _, kind := range kinds {
		key := incidentKey{Channel: channel, Kind: kind}
		n := s.open[key]
		if n == nil {
			continue
		}
		at := s.now
		n.ClosedAt = &at
		if n.isHarmless() {
			n.MailAt = nil
		}
		delete(s.open, key)
		s.closed[key] = n
		s.touch(n)
	}
}

// isHarmless reports whether no post has failed since people were mailed last, or at all when nobody was.
func (n *Notification) isHarmless() bool {
	if n.Reopened > 0 && n.MailedPosts == nil {
		return n.Posts == n.EarlierPosts
	}
	return n.Kind == NotifyReconnect && n.Posts == 0
}

// drop removes an incident, as if it had not been.
func (s *Incidents) drop(key incidentKey) {
	n := s.open[key]
	delete(s.open, key)
	s.touched = slices.DeleteFunc(s.touched, func(t *Notification) bool { return t == n })
	if s.stored[n.ID] {
		s.dropped = append(s.dropped, n.ID)
	}
}

func (s *Incidents) touch(n *Notification) {
	if !slices.Contains(s.touched, n) {
		s.touched = append(s.touched, n)
	}
}

// IncidentChanges are what is to be stored.
type IncidentChanges struct {
	// Deleted are to be deleted first, then Changed updated, then Begun inserted: a channel has one open incident of a
	// kind at any time.
	Deleted []NotificationID
	Changed []Notification
	Begun   []Notification
	// Published are posts to be added to those of their channels.
	Published []ChannelPosts
}

// Changes returns what the events have changed.
func (s *Incidents) Changes() (out IncidentChanges) {
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
