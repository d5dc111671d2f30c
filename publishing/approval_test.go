package publishing_test

import (
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

var asked = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func approval(status publishing.ApprovalStatus) publishing.Approval {
	a := publishing.Approval{Status: status, RequestedAt: asked, ExpiresAt: asked.Add(publishing.ApprovalLife)}
	if status != publishing.ApprovalPending {
		at := asked.Add(time.Hour)
		a.ResolvedAt = &at
	}
	return a
}

func TestApproval_OpenOnlyWhilePending(t *testing.T) {
	t.Parallel()
	before, end := asked.Add(publishing.ApprovalLife-time.Second), asked.Add(publishing.ApprovalLife)
	for _, c := range []struct {
		name           string
		status         publishing.ApprovalStatus
		at             time.Time
		shown          publishing.ApprovalStatus
		open, readable fault.Kind
	}{
		{"pending", publishing.ApprovalPending, before, publishing.ApprovalPending, "", ""},
		{"pending at its end", publishing.ApprovalPending, end, publishing.ApprovalExpired, fault.Gone, fault.Gone},
		{"approved", publishing.ApprovalApproved, before, publishing.ApprovalApproved, fault.Conflict, ""},
		{"approved long ago", publishing.ApprovalApproved, end, publishing.ApprovalApproved, fault.Conflict, fault.Gone},
		{"rejected", publishing.ApprovalRejected, before, publishing.ApprovalRejected, fault.Conflict, ""},
		{"expired", publishing.ApprovalExpired, before, publishing.ApprovalExpired, fault.Gone, fault.Gone},
		{"void", publishing.ApprovalVoid, before, publishing.ApprovalNone, fault.Gone, fault.Gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := approval(c.status)
			if got := a.At(c.at).Shown(); got != c.shown {
				t.Errorf("it is shown as %s, want %s", got, c.shown)
			}
			if err := a.Open(c.at); !isKind(err, c.open) {
				t.Errorf("Open returned %v, want %q", err, c.open)
			}
			if err := a.Readable(c.at); !isKind(err, c.readable) {
				t.Errorf("Readable returned %v, want %q", err, c.readable)
			}
		})
	}
}

// isKind reports whether err has the kind; "" stands for a nil error.
func isKind(err error, kind fault.Kind) bool {
	if kind == "" {
		return err == nil
	}
	return fault.Is(err, kind)
}

func TestApproval_RequesterMayNotAnswer(t *testing.T) {
	t.Parallel()
	author, other, operator := id.New[tenancy.PersonTag](), id.New[tenancy.PersonTag](), id.New[tenancy.PersonTag]()
	key, otherKey := id.New[tenancy.KeyTag](), id.New[tenancy.KeyTag]()
	by := approval(publishing.ApprovalPending)
	by.Person, by.Key = author, key
	for _, c := range []struct {
		name                           string
		who                            tenancy.Principal
		resolves, sees, withdraws, due bool
	}{
		{"another member", tenancy.Principal{Via: tenancy.ViaSession, Person: other, Role: tenancy.RoleUser}, true, true, false, false},
		{"another administrator", tenancy.Principal{Via: tenancy.ViaSession, Person: other, Role: tenancy.RoleAdmin}, true, true, true, true},
		{"the person", tenancy.Principal{Via: tenancy.ViaSession, Person: author, Role: tenancy.RoleUser}, false, false, true, false},
		{"the person as administrator", tenancy.Principal{Via: tenancy.ViaSession, Person: author, Role: tenancy.RoleSuperAdmin}, false, false, true, true},
		{"the person acting as another", tenancy.Principal{Via: tenancy.ViaSession, Person: other, Impersonator: author, Role: tenancy.RoleUser}, false, false, true, false},
		{"an operator acting as another member", tenancy.Principal{Via: tenancy.ViaSession, Person: other, Impersonator: operator, Role: tenancy.RoleAdmin}, false, false, true, true},
		{"the same key", tenancy.Principal{Via: tenancy.ViaKey, Person: author, Key: key, Role: tenancy.RoleSuperAdmin}, false, false, true, true},
		{"another key", tenancy.Principal{Via: tenancy.ViaKey, Person: other, Key: otherKey, Role: tenancy.RoleSuperAdmin}, false, false, true, true},
		{"an agent", tenancy.Principal{Via: tenancy.ViaAgent, Person: other, Role: tenancy.RoleUser}, false, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := by.MayResolve(c.who) == nil; got != c.resolves {
				t.Errorf("may answer is %v, want %v", got, c.resolves)
			}
			if got := by.ShowsLink(c.who); got != c.sees {
				t.Errorf("sees the link is %v, want %v", got, c.sees)
			}
			if got := by.MayWithdraw(c.who) == nil; got != c.withdraws {
				t.Errorf("may withdraw is %v, want %v", got, c.withdraws)
			}
			if got := by.MaySchedule(c.who, asked) == nil; got != c.due {
				t.Errorf("may schedule is %v, want %v", got, c.due)
			}
			if by.MaySchedule(c.who, by.ExpiresAt) != nil {
				t.Error("may not schedule after the request has expired, want that everybody may")
			}
		})
	}
}

// An operator who made the request as a member cannot answer it under their own name.
func TestApproval_OperatorMayNotAnswerOwnRequest(t *testing.T) {
	t.Parallel()
	by := approval(publishing.ApprovalPending)
	by.Person, by.Impersonator = id.New[tenancy.PersonTag](), id.New[tenancy.PersonTag]()
	operator := tenancy.Principal{Via: tenancy.ViaSession, Person: by.Impersonator, Role: tenancy.RoleAdmin}
	if err := by.MayResolve(operator); !fault.Is(err, fault.Forbidden) {
		t.Errorf("MayResolve returned %v, want Forbidden", err)
	}
	if by.ShowsLink(operator) {
		t.Error("the operator sees the review link")
	}
}

func TestMayOverride(t *testing.T) {
	t.Parallel()
	person, operator := id.New[tenancy.PersonTag](), id.New[tenancy.PersonTag]()
	for name, c := range map[string]struct {
		who tenancy.Principal
		may bool
	}{
		"a member":                         {tenancy.Principal{Via: tenancy.ViaSession, Person: person, Role: tenancy.RoleUser}, false},
		"an administrator":                 {tenancy.Principal{Via: tenancy.ViaSession, Person: person, Role: tenancy.RoleAdmin}, true},
		"the owner":                        {tenancy.Principal{Via: tenancy.ViaSession, Person: person, Role: tenancy.RoleSuperAdmin}, true},
		"a key":                            {tenancy.Principal{Via: tenancy.ViaKey, Person: person, Role: tenancy.RoleSuperAdmin}, true},
		"an operator for an administrator": {tenancy.Principal{Via: tenancy.ViaSession, Person: person, Impersonator: operator, Role: tenancy.RoleAdmin}, false},
	} {
		if err := publishing.MayOverride(c.who); (err == nil) != c.may || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: MayOverride returned %v, want that it is allowed: %v", name, err, c.may)
		}
	}
}

func TestApproval_KeyWithoutCreatorIsNotAPerson(t *testing.T) {
	t.Parallel()
	a := approval(publishing.ApprovalPending)
	a.Key = id.New[tenancy.KeyTag]()
	if a.Requested(tenancy.Principal{Via: tenancy.ViaSession, Person: id.New[tenancy.PersonTag]()}) {
		t.Error("a person counts as who asked, want only the key")
	}
	if !a.Requested(tenancy.Principal{Via: tenancy.ViaKey, Key: a.Key}) {
		t.Error("the key does not count as who asked")
	}
}

func TestRequestApproval_Cleaned(t *testing.T) {
	t.Parallel()
	got, err := publishing.RequestApproval{Note: new("  please  "), ReviewerEmail: new(" Client@Example.com ")}.Cleaned()
	if err != nil || *got.Note != "please" || *got.ReviewerEmail != "client@example.com" {
		t.Errorf("got %v and %v, want cleaned texts", got, err)
	}
	got, err = publishing.RequestApproval{Note: new(" "), ReviewerEmail: new("")}.Cleaned()
	if err != nil || got.Note != nil || got.ReviewerEmail != nil {
		t.Errorf("got %v and %v, want no texts", got, err)
	}
	for name, c := range map[string]publishing.RequestApproval{
		"long note": {Note: new(strings.Repeat("ä", publishing.MaxApprovalNote+1))}, "NUL": {Note: new("a\x00b")},
		"no address": {ReviewerEmail: new("client")}, "two addresses": {ReviewerEmail: new("a@b.test, c@d.test")},
	} {
		if _, err := c.Cleaned(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

func TestResolveApproval_Cleaned(t *testing.T) {
	t.Parallel()
	got, err := publishing.ResolveApproval{Action: "approve", Note: new(" "), Name: new(" Ada ")}.Cleaned()
	if err != nil || got.Note != nil || *got.Name != "Ada" || got.Action.Status() != publishing.ApprovalApproved {
		t.Errorf("got %v and %v, want the name Ada and no note", got, err)
	}
	for name, c := range map[string]publishing.ResolveApproval{
		"no action": {}, "other action": {Action: "maybe"},
		"long name":    {Action: "reject", Name: new(strings.Repeat("x", publishing.MaxReviewerName+1))},
		"control name": {Action: "reject", Name: new("a\nb")},
		"long note":    {Action: "reject", Note: new(strings.Repeat("x", publishing.MaxApprovalNote+1))},
	} {
		if _, err := c.Cleaned(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

// A person is responsible for their agents: what an agent asks for, its person may answer. The
// agent itself never answers and never sees the link, and a request of the person is still answered
// by somebody else.
func TestApproval_PersonMayAnswerTheirAgent(t *testing.T) {
	t.Parallel()
	person, other := id.New[tenancy.PersonTag](), id.New[tenancy.PersonTag]()
	agent := tenancy.Agent{ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag]()}
	asks := agent
	asks.Limits = &tenancy.AgentLimits{MustAsk: true}
	by := approval(publishing.ApprovalPending)
	by.Person, by.Agent, by.Grant, by.AgentName = person, agent.ID, agent.Grant, "Planner"
	for _, c := range []struct {
		name                      string
		who                       tenancy.Principal
		resolves, sees, withdraws bool
	}{
		{"its person", tenancy.Principal{Via: tenancy.ViaSession, Person: person, Role: tenancy.RoleUser}, true, false, true},
		{"another member", tenancy.Principal{Via: tenancy.ViaSession, Person: other, Role: tenancy.RoleUser}, true, true, false},
		{"its person with a key", tenancy.Principal{Via: tenancy.ViaKey, Person: person, Role: tenancy.RoleSuperAdmin}, false, false, true},
		{"its person acting as another", tenancy.Principal{Via: tenancy.ViaSession, Person: other, Impersonator: person, Role: tenancy.RoleUser}, false, false, true},
		{"an operator acting as its person", tenancy.Principal{Via: tenancy.ViaSession, Person: person, Impersonator: other, Role: tenancy.RoleUser}, false, false, true},
		{"the agent", tenancy.Principal{Via: tenancy.ViaAgent, Person: person, Agent: agent, Role: tenancy.RoleUser}, false, false, true},
		{"the agent that must ask", tenancy.Principal{Via: tenancy.ViaAgent, Person: person, Agent: asks, Role: tenancy.RoleUser}, false, false, true},
		{"another person's agent", tenancy.Principal{Via: tenancy.ViaAgent, Person: other, Agent: agent, Role: tenancy.RoleUser}, false, false, false},
	} {
		if got := by.MayResolve(c.who) == nil; got != c.resolves {
			t.Errorf("%s: may answer is %v, want %v", c.name, got, c.resolves)
		}
		if got := by.ShowsLink(c.who); got != c.sees {
			t.Errorf("%s: sees the link is %v, want %v", c.name, got, c.sees)
		}
		if got := by.MayWithdraw(c.who) == nil; got != c.withdraws {
			t.Errorf("%s: may withdraw is %v, want %v", c.name, got, c.withdraws)
		}
	}
	// Withdrawing an approval takes the post out of the queue.
	by.Status = publishing.ApprovalApproved
	for want, a := range map[bool]tenancy.Agent{true: agent, false: asks} {
		who := tenancy.Principal{Via: tenancy.ViaAgent, Person: person, Agent: a, Role: tenancy.RoleSuperAdmin}
		if got := by.MayWithdraw(who) == nil; got != want {
			t.Errorf("an agent may withdraw an approval is %v, want %v", got, want)
		}
	}
}
