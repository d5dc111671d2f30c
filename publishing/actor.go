package publishing

import "crier/tenancy"

// ActorOf returns who is acting, as shown in the timeline of a post, for example "operator for
// person 0192f0c1-…". The result contains no addresses, because timelines outlive accounts.
func ActorOf(p tenancy.Principal) string {
	if p.Via == tenancy.ViaKey {
		return "key " + p.Key.String()
	}
	who := "person " + p.Person.String()
	if !p.Behind.IsZero() {
		return "operator for " + who
	}
	return who
}
