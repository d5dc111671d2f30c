package publishing

import "crier/tenancy"

// ActorOf returns a description of the principal, as shown in a post's timeline. Examples:
// "operator for person 0192f0c1-…" and "agent 0192f0c2-… for person 0192f0c1-…". The description
// contains no email addresses, because timelines outlive accounts.
func ActorOf(p tenancy.Principal) string {
	if p.Via == tenancy.ViaKey {
		return "key " + p.Key.String()
	}
	who := "person " + p.Person.String()
	if !p.Impersonator.IsZero() {
		return "operator for " + who
	}
	if !p.Agent.IsZero() {
		return "agent " + p.Agent.ID.String() + " for " + who
	}
	return who
}
