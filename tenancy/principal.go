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

// The kinds of credential. The table audit has a CHECK with the same list.
const (
	// ViaKey is an API key of an organization.
	ViaKey Via = "key"
	// ViaSession is the session of a person who has logged in.
	ViaSession Via = "session"
	// ViaAgent is an access token that a person has given to an agent.
	ViaAgent Via = "agent"
	// ViaInstance is the operator of the instance, or the service itself.
	ViaInstance Via = "instance"
	// ViaGuest is the link of a review, which a person without an account may have.
	ViaGuest Via = "guest"
)

// Access is whether the person of a session may use the organization of the request.
type Access string

const (
	// AccessFull allows everything that the role allows.
	AccessFull Access = ""
	// AccessNone means that the person is a member of no organization.
	AccessNone Access = "none"
	// AccessSuspended means that the operator has suspended the organization.
	AccessSuspended Access = "suspended"
	// AccessEnroll means that the organization requires a second factor and the person has none.
	AccessEnroll Access = "enroll"
)

// Source is where a request comes from. All texts are cut to what their columns hold.
type Source struct {
	// Client is the address of the client: an IPv4 address or a /64 network of IPv6.
	Client string
	// Site is the network of its subscriber: an IPv4 address or a /48 network of IPv6.
	Site string
	// Agent is the header User-Agent.
	Agent string
	// Device is the token of the browser's cookie device, empty for a browser that has never signed
	// in.
	Device string
}

// maxAgent is the greatest length of a stored User-Agent in characters.
const maxAgent = 256

// NewSource returns a Source that can be stored: the agent is cut, and characters that cannot be
// shown are left out.
func NewSource(client, site, agent, device string) Source {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(agent, ""))
	return Source{Client: client, Site: site, Agent: text.Cut(clean, maxAgent), Device: device}
}

// Agent is a program that acts for a person, and what allows it to. The zero Agent is none.
type Agent struct {
	ID AgentID
	// Grant is the person's permission, which the person can end.
	Grant GrantID
	// Name is how the agent is called in the audit log.
	Name string
}

// IsZero reports whether there is no agent.
func (a Agent) IsZero() bool { return a.ID.IsZero() }

// Principal is the identity that a request acts for: exactly one organization, and a person. It
// says who acts (the person, or the key without one), through what (Via, with the key, the session
// or the agent's grant), and on whose behalf: an agent acts on behalf of Person, and an
// administrator of the instance stands behind the Person as whom they act.
type Principal struct {
	// Org is zero when Access is AccessNone.
	Org OrgID
	// Person is the person of the session or the creator of the API key. It is zero for a key
	// without a creator.
	Person PersonID
	Role   Role
	Via    Via
	// Key is set when Via is ViaKey.
	Key KeyID
	// Session is set when Via is ViaSession.
	Session SessionID
	// Agent is set when Via is ViaAgent.
	Agent Agent
	// Access limits a session. It is AccessFull for a key.
	Access Access
	// Name is how the principal is called in the audit log: the address of the person, or the name
	// of the key.
	Name string
	// Instance means that the person is an administrator of the instance. It is false while Behind
	// is set.
	Instance bool
	// Behind is the administrator of the instance who acts as Person; zero if the person does.
	Behind PersonID
	// BehindName is the address of Behind.
	BehindName string
	From       Source
}

// Doer returns the name of the real actor: the instance administrator during an impersonation, the
// agent with the person for whom it acts, and otherwise Name.
func (p Principal) Doer() string { return cmp.Or(p.BehindName, p.actor()) }

// actor returns how the principal is called in the audit log, in at most maxActor characters.
func (p Principal) actor() string {
	if p.Agent.IsZero() {
		return p.Name
	}
	behalf := " for " + p.Name
	return text.Cut(p.Agent.Name, maxActor-utf8.RuneCountInString(behalf)) + behalf
}
