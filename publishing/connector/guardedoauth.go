package connector

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"crier/platform/text"
)

// Limits on what the optional interfaces return.
const (
	maxCandidates = 200
	maxMissing    = 20
	maxOutput     = 256 << 10 // bytes of a tool's output
	maxSeries     = 50
	maxPoints     = 400
	maxValue      = 1e15 // no statistic has a larger absolute value
)

// unguarded returns the connector that c guards, or c itself if it is not a guarded connector.
func unguarded(c Connector) Connector {
	if g, ok := c.(interface{ inner() Connector }); ok {
		return g.inner()
	}
	return c
}

func (g guarded) inner() Connector { return g.c }

// AuthorizerOf returns c as an Authorizer, guarded in the same way as connectors from the Registry.
// It returns false if the connector is not an Authorizer.
func AuthorizerOf(c Connector) (Authorizer, bool) {
	a, ok := unguarded(c).(Authorizer)
	return guardedAuthorizer{a: a}, ok
}

type guardedAuthorizer struct{ a Authorizer }

func (g guardedAuthorizer) Family() Family { return g.a.Family() }

// AuthorizeURL returns an http or https URL of at most 2,048 bytes. It returns KindContent if the
// connector returns any other URL, or if it panics.
func (g guardedAuthorizer) AuthorizeURL(r Authorization) (address string, err error) {
	defer func() {
		if v := recover(); v != nil {
			address, err = "", panicError(v, KindContent, failedConnect)
		}
	}()
	address, err = g.a.AuthorizeURL(r)
	if err != nil {
		return "", cleanError(err, false)
	}
	if cleanURL(address) == "" {
		return "", &Error{Kind: KindContent, Public: failedConnect, Raw: "the authorization URL cannot be used"}
	}
	return address, nil
}

// Exchange returns clean candidates and a credential that can be stored. It returns KindContent if
// the connector returns neither an account nor usable candidates, or if it panics.
func (g guardedAuthorizer) Exchange(ctx context.Context, env Env, app App, code Code) (out Authorized, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = Authorized{}, panicError(v, KindContent, failedConnect)
		}
	}()
	out, err = g.a.Exchange(ctx, env, app, code)
	if err != nil {
		return Authorized{}, cleanError(err, false)
	}
	if len(out.Missing) > 0 {
		return Authorized{Missing: cleanWords(out.Missing)}, nil
	}
	if out.Connected != nil {
		connected, err := cleanConnected(*out.Connected)
		return Authorized{Connected: &connected}, err
	}
	if len(out.Credential) > maxCredential {
		return Authorized{}, tooLarge(KindContent, out.Credential)
	}
	out.Candidates = cleanCandidates(out.Candidates)
	if len(out.Candidates) == 0 {
		const public = "This sign-in does not give access to any account that can be connected."
		return Authorized{}, &Error{Kind: KindContent, Code: "no_candidates", Public: public}
	}
	return out, nil
}

// Select returns a clean account and a credential that can be stored. It returns KindContent if the
// connector panics.
func (g guardedAuthorizer) Select(
	ctx context.Context, env Env, app App, credential json.RawMessage, candidate string,
) (out Connected, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = Connected{}, panicError(v, KindContent, failedConnect)
		}
	}()
	out, err = g.a.Select(ctx, env, app, credential, candidate)
	if err != nil {
		return Connected{}, cleanError(err, false)
	}
	return cleanConnected(out)
}

// failedConnect is shown to users if the connector fails to connect an account by OAuth.
const failedConnect = "The connector failed to connect this account."

func cleanConnected(c Connected) (out Connected, err error) {
	c.Account, err = cleanAccount(c.Account)
	if err != nil {
		return Connected{}, err
	}
	if len(c.Credential) > maxCredential {
		return Connected{}, tooLarge(KindContent, c.Credential)
	}
	return c, nil
}

func cleanWords(words []string) []string {
	out := make([]string, 0, min(len(words), maxMissing))
	for _, w := range words[:min(len(words), maxMissing)] {
		out = append(out, text.Line(w, maxCode))
	}
	return out
}

// cleanCandidates returns at most maxCandidates candidates. It drops a candidate if its ID cannot
// be stored unchanged, because a changed ID could belong to another candidate.
func cleanCandidates(all []Candidate) []Candidate {
	out := make([]Candidate, 0, min(len(all), maxCandidates))
	for _, c := range all {
		if c.ID == "" || text.Line(c.ID, maxID) != c.ID || len(out) == maxCandidates {
			continue
		}
		out = append(out, Candidate{ID: c.ID, Name: text.Line(c.Name, maxName), Picture: cleanURL(c.Picture)})
	}
	return out
}

// ToolBoxOf returns c as a ToolBox, guarded in the same way as connectors from the Registry. It
// returns false if the connector is not a ToolBox.
func ToolBoxOf(c Connector) (ToolBox, bool) {
	t, ok := unguarded(c).(ToolBox)
	return guardedTools{t: t}, ok
}

type guardedTools struct{ t ToolBox }

func (g guardedTools) Tools() []Tool { return g.t.Tools() }

// Call returns a JSON document of at most 256 KB. It returns KindTransient if the output is not
// JSON or is larger, and KindContent if the connector panics.
func (g guardedTools) Call(
	ctx context.Context, s *Session, name string, data map[string]any,
) (out json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, panicError(v, KindContent, "The connector failed on this tool.")
		}
	}()
	out, err = g.t.Call(ctx, s, name, data)
	if err != nil {
		return nil, cleanError(err, false)
	}
	if len(out) > maxOutput || !json.Valid(out) {
		const public = "The platform's response cannot be used."
		return nil, &Error{Kind: KindTransient, Public: public, Raw: "the output is too large or is not JSON"}
	}
	return out, nil
}

// ListerOf returns c as a Lister, guarded in the same way as connectors from the Registry. It
// returns false if the connector is not a Lister.
func ListerOf(c Connector) (Lister, bool) {
	l, ok := unguarded(c).(Lister)
	return guardedLister{l: l}, ok
}

type guardedLister struct{ l Lister }

// Recent returns at most limit items, with clean IDs and URLs. It drops items without a usable ID.
// It returns KindContent if the connector panics.
func (g guardedLister) Recent(ctx context.Context, s *Session, limit int) (out []RemoteItem, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, panicError(v, KindContent, "The connector failed to list the posts.")
		}
	}()
	all, err := g.l.Recent(ctx, s, limit)
	if err != nil {
		return nil, cleanError(err, false)
	}
	for _, item := range all {
		if item.ID != "" && text.Line(item.ID, maxID) == item.ID && len(out) < limit {
			out = append(out, RemoteItem{ID: item.ID, URL: cleanURL(item.URL)})
		}
	}
	return out, nil
}

// AnalystOf returns c as an Analyst, guarded in the same way as connectors from the Registry. It
// returns false if the connector is not an Analyst.
func AnalystOf(c Connector) (Analyst, bool) {
	a, ok := unguarded(c).(Analyst)
	return guardedAnalyst{a: a}, ok
}

type guardedAnalyst struct{ a Analyst }

// Channel returns at most 50 series of at most 400 points, with clean labels and values from -1e15
// to 1e15. It returns KindOperator if the connector panics.
func (g guardedAnalyst) Channel(ctx context.Context, s *Session, since, until time.Time) ([]Series, error) {
	return guardSeries(func() ([]Series, error) { return g.a.Channel(ctx, s, since, until) })
}

// Post applies the same limits as Channel.
func (g guardedAnalyst) Post(ctx context.Context, s *Session, ref Ref, since, until time.Time) ([]Series, error) {
	return guardSeries(func() ([]Series, error) { return g.a.Post(ctx, s, ref, since, until) })
}

func guardSeries(read func() ([]Series, error)) (out []Series, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, panicError(v, KindOperator, "The connector failed to read the statistics.")
		}
	}()
	all, err := read()
	if err != nil {
		return nil, cleanError(err, false)
	}
	for _, s := range all[:min(len(all), maxSeries)] {
		s.Label = text.Line(s.Label, maxCode)
		if s.Label != "" {
			s.Points = cleanPoints(s.Points)
			out = append(out, s)
		}
	}
	return out, nil
}

// cleanPoints returns at most 400 points. It drops points whose value is not a number or is larger
// than any real statistic.
func cleanPoints(all []Point) []Point {
	out := make([]Point, 0, min(len(all), maxPoints))
	for _, p := range all {
		// false for NaN
		if math.Abs(p.Value) <= maxValue && len(out) < maxPoints {
			out = append(out, p)
		}
	}
	return out
}
