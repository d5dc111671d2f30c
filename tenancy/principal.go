package tenancy

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"crier/platform/text"
)

// Via is the kind of credential that authenticated a request.
type Via string

// The kinds of credential. The audit table has a CHECK constraint with the same values.
const (
	// ViaKey is an organization's API key.
	ViaKey Via = "key"
	// ViaSession is the session of a person who has logged in.
	ViaSession Via = "session"
	// ViaAgent is an access token that a person has granted to an agent.
	ViaAgent Via = "agent"
	// ViaInstance stands for the operator of the instance, or the service itself.
	ViaInstance Via = "instance"
	// ViaGuest is a review link, whose holder may have no account.
	ViaGuest Via = "guest"
)

// Access says whether a session's person may use the request's organization.
type Access string

const (
	// AccessFull allows everything that the person's role allows.
	AccessFull Access = ""
	// AccessNone means that the person does not belong to any organization.
	AccessNone Access = "none"
	// AccessSuspended means that the operator has suspended the organization.
	AccessSuspended Access = "suspended"
	// AccessEnroll means that the organization requires a second factor and the person has none.
	AccessEnroll Access = "enroll"
)

// Source describes where a request comes from; see NewSource.
type Source struct {
	// Client is the client's IPv4 address or IPv6 /64 network. Example: 2001:db8:1:2::/64
	Client string
	// Site is the subscriber's network that the client belongs to: an IPv4 address or an IPv6 /48
	// network. Example: 2001:db8:1::/48
	Site string
	// Agent is the User-Agent header.
	Agent string
	// Device is the token in the browser's device cookie, or empty if there is none.
	Device string
}

// maxAgent is the maximum length of a stored User-Agent, in characters.
const maxAgent = 256

// NewSource returns a Source that can be stored. It removes unprintable characters from agent and
// truncates agent to maxAgent characters.
func NewSource(client, site, agent, device string) Source {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(agent, ""))
	return Source{Client: client, Site: site, Agent: text.Cut(clean, maxAgent), Device: device}
}

// Agent is a program that acts for a person, together with the grant that allows it to do so. The
// zero Agent means that there is no agent.
type Agent struct {
	ID AgentID
	// Grant is the permission that the person gave the agent. The person can revoke it.
	Grant GrantID
	// Name is the agent's name in the audit log.
	Name string
	// Write means that the agent may make changes. Every agent may read.
	Write bool
	// WriteDeclined means that the agent requested write access but its person allowed only
	// reading. It is never set together with Write.
	WriteDeclined bool
	// Limits restricts the agent more than its person's role does. It is nil if the person set no
	// limits.
	Limits *AgentLimits
}

// AgentLimits restricts what an agent may do.
type AgentLimits struct {
	// Channels and Customers hold ids. If both are empty, the agent may use all channels.
	// Otherwise, it may use only these channels and the channels of these customers.
	Channels, Customers []string
	// MustAsk restricts the agent to drafts. A person must approve each draft before it is
	// published.
	MustAsk bool
	// PostsPerDay is the maximum number of posts that the agent may queue per day, in the
	// organization's time zone. 0 means no limit.
	PostsPerDay int
}

// IsZero reports whether there is no agent.
func (a Agent) IsZero() bool { return a.ID.IsZero() }

// Principal is the identity that a request acts for, in at most one organization. It identifies the
// person, or only the key if there is no person. It also identifies the credential: Via, together
// with the key, the session or the agent's grant.
//
// If Agent is set, the agent acts on behalf of Person. If Impersonator is set, that instance
// administrator acts as Person.
type Principal struct {
	// Org is zero if Access is AccessNone.
	Org OrgID
	// Person is the session's person or the API key's creator. It is zero for a key without a
	// creator.
	Person PersonID
	Role   Role
	Via    Via
	// Key is set if Via is ViaKey.
	Key KeyID
	// Session is set if Via is ViaSession.
	Session SessionID
	// Agent is set if Via is ViaAgent.
	Agent Agent
	// Access restricts what a session can do. For a key, it is always AccessFull.
	Access Access
	// Name is the principal's name in the audit log: the person's email address, or "API key"
	// followed by the first characters of the key. Example: API key crier_Ab3x
	Name string
	// Instance means that the person is an instance administrator. It is false while Impersonator
	// is set.
	Instance bool
	// Impersonator is the instance administrator who is impersonating Person, or zero.
	Impersonator PersonID
	// ImpersonatorName is the email address of the administrator in Impersonator.
	ImpersonatorName string
	From             Source
}

// Doer returns the name of whoever is actually acting. During an impersonation, that is the
// instance administrator's email address. If there is an agent, it is the agent's name followed by
// "for" and Name. Otherwise, it is Name.
func (p Principal) Doer() string { return cmp.Or(p.ImpersonatorName, p.actor()) }

// actor returns the name to record in the audit log. It has at most maxActor characters.
func (p Principal) actor() string {
	if p.Agent.IsZero() {
		return p.Name
	}
	behalf := " for " + p.Name
	return text.Cut(p.Agent.Name, maxActor-utf8.RuneCountInString(behalf)) + behalf
}
