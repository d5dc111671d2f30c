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
	// ViaGuest is a review link, whose holder may have no account.
	ViaGuest Via = "guest"
)

// Access says whether the person of a session may use the organization of the request.
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

// Source is where a request comes from. Its texts are truncated to fit their columns.
type Source struct {
	// Client is the address of the client: an IPv4 address or a /64 network of IPv6.
	Client string
	// Site is the network of the client's subscriber: an IPv4 address or a /48 network of IPv6.
	Site string
	// Agent is the User-Agent header.
	Agent string
	// Device is the token in the browser's device cookie, or empty if the browser has never signed
	// in.
	Device string
}

// maxAgent is the maximum length of a stored User-Agent in characters.
const maxAgent = 256

// NewSource returns a Source that can be stored: it truncates the agent and removes characters that
// cannot be displayed.
func NewSource(client, site, agent, device string) Source {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(agent, ""))
	return Source{Client: client, Site: site, Agent: text.Cut(clean, maxAgent), Device: device}
}

// Agent is a program that acts for a person, and the grant that allows it to. The zero Agent means
// that there is no agent.
type Agent struct {
	ID AgentID
	// Grant is the person's permission, which the person can revoke.
	Grant GrantID
	// Name is what the audit log calls the agent.
	Name string
}

// IsZero reports whether there is no agent.
func (a Agent) IsZero() bool { return a.ID.IsZero() }

// Principal is the identity that a request acts for: exactly one organization, and a person. It
// says who acts (the person, or the key if there is no person), by what means (Via, with the key,
// the session or the agent's grant), and on whose behalf.
//
// An agent acts on behalf of Person. An instance administrator (Behind) acts as Person.
type Principal struct {
	// Org is zero if Access is AccessNone.
	Org OrgID
	// Person is the person of the session, or the creator of the API key. It is zero for a key
	// without a creator.
	Person PersonID
	Role   Role
	Via    Via
	// Key is set if Via is ViaKey.
	Key KeyID
	// Session is set if Via is ViaSession.
	Session SessionID
	// Agent is set if Via is ViaAgent.
	Agent Agent
	// Access limits a session. It is AccessFull for a key.
	Access Access
	// Name is what the audit log calls the principal: the address of the person, or "API key" with
	// the key's first characters. Example: API key crier_Ab3x
	Name string
	// Instance means that the person is an instance administrator. It is false while Behind is set.
	Instance bool
	// Behind is the instance administrator who is impersonating Person, or zero.
	Behind PersonID
	// BehindName is the address of Behind.
	BehindName string
	From       Source
}

// Doer returns the name of the real actor: the instance administrator during an impersonation, the
// agent with the person it acts for, or otherwise Name.
func (p Principal) Doer() string { return cmp.Or(p.BehindName, p.actor()) }

// actor returns what the audit log calls the principal, in at most maxActor characters.
func (p Principal) actor() string {
	if p.Agent.IsZero() {
		return p.Name
	}
	behalf := " for " + p.Name
	return text.Cut(p.Agent.Name, maxActor-utf8.RuneCountInString(behalf)) + behalf
}
