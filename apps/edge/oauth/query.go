package oauth

import (
	"net/url"
	"slices"
	"strings"

	"crier/oidc"
)

// maxQuery and maxParameter are the maximum lengths, in bytes, of an authorization request's query
// and of each parameter. The query's length is limited because pages repeat the query in their
// forms' URLs.
const (
	maxQuery     = 6 << 10
	maxParameter = 2 << 10
)

// organizationParameter contains the id of the organization that the person has chosen on the
// consent page. It is the only known parameter that clients do not send.
const organizationParameter = "organization"

// known lists the parameters of an authorization request. All other parameters are ignored, as RFC
// 6749 requires.
var known = []string{
	"client_id", "redirect_uri", "response_type", "response_mode", "state", "scope", "resource", "prompt",
	"code_challenge", "code_challenge_method", "request", "request_uri", organizationParameter,
}

// query holds the parameters of an authorization request as the client sent them.
type query struct {
	values url.Values
	// twice is the first parameter that was sent more than once, or "". Only resource may be
	// repeated.
	twice string
}

// parseQuery reads the parameters in raw. Parameters without a value count as absent. ok is false
// if the query is malformed or too long.
func parseQuery(raw string) (q query, ok bool) {
	if len(raw) > maxQuery {
		return query{}, false
	}
	all, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, false
	}
	return newQuery(all)
}

func newQuery(all url.Values) (q query, ok bool) {
	q.values = url.Values{}
	for _, name := range known {
		sent := slices.DeleteFunc(slices.Clone(all[name]), func(v string) bool { return v == "" })
		if len(all[name]) > 1 && name != "resource" && q.twice == "" {
			q.twice = name
		}
		for _, value := range sent {
			if len(value) > maxParameter {
				return query{}, false
			}
		}
		if len(sent) > 0 {
			q.values[name] = sent
		}
	}
	return q, true
}

func (q query) get(name string) string { return q.values.Get(name) }

// encode returns the query for the URL of a form or a redirect. It contains only known parameters.
func (q query) encode() string { return q.values.Encode() }

// without returns the query without some parameters.
func (q query) without(names ...string) query {
	out := query{values: url.Values{}}
	for name, values := range q.values {
		if !slices.Contains(names, name) {
			out.values[name] = values
		}
	}
	return out
}

// with returns the query with a parameter set to a new value.
func (q query) with(name, value string) query {
	out := q.without(name)
	out.values.Set(name, value)
	return out
}

// prompts reports whether the client requests the given kind of interaction.
func (q query) prompts(kind string) bool {
	return slices.Contains(strings.Fields(q.get("prompt")), kind)
}

// query returns the query that a JSON request represents.
func (in ApproveOAuthDto) query() (query, bool) {
	responseType := in.ResponseType
	if responseType == "" {
		responseType = "code"
	}
	v := url.Values{}
	for name, value := range map[string]string{
		"client_id": in.ClientID, "redirect_uri": in.RedirectURI, "response_type": responseType, "state": in.State,
		"scope": in.Scope, "resource": in.Resource, "code_challenge": in.Challenge,
		"code_challenge_method": in.ChallengeMethod, organizationParameter: in.Organization,
	} {
		v.Set(name, value)
	}
	return newQuery(v)
}

// grantable returns the requested scopes that the client may have.
func grantable(c oidc.Client, sent string) oidc.Scopes {
	asked := oidc.ParseScopes(sent)
	if len(c.Scopes) == 0 {
		return asked
	}
	return asked.Within(c.Scopes)
}
