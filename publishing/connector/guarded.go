package connector

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"crier/platform/outbound"
	"crier/platform/text"
	"crier/publishing/file/picture"
)

// guard returns a connector that protects the engine from c and its platform. It turns panics into
// errors, and cleans and truncates all text. The Registry guards every connector.
func guard(c Connector) Connector {
	g := guarded{c: c, descriptor: c.Describe()}
	if r, ok := c.(Refresher); ok {
		return guardedRefresher{guarded: g, r: r}
	}
	return g
}

// guarded is a connector that cleans c's results. It implements Connector and Deriver.
type guarded struct {
	c          Connector
	descriptor Descriptor
}

// guardedRefresher is a guarded Refresher. It implements Connector, Deriver and Refresher.
type guardedRefresher struct {
	guarded
	r Refresher
}

func (g guarded) Describe() Descriptor { return g.descriptor }

// Connect returns a clean account and a credential of at most 16 KB. It returns KindContent if the
// credential is larger, or if the connector panics.
func (g guarded) Connect(ctx context.Context, env Env, fields map[string]string) (out Connected, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = Connected{}, panicError(v, KindContent, "The connector failed on this form.")
		}
	}()
	out, err = g.c.Connect(ctx, env, fields)
	if err != nil {
		return Connected{}, cleanError(err, false)
	}
	out.Account, err = cleanAccount(out.Account)
	if err != nil {
		return Connected{}, err
	}
	if len(out.Credential) > maxCredential {
		return Connected{}, tooLarge(KindContent, out.Credential)
	}
	return out, nil
}

// Validate returns problems with clean text. If the connector panics, Validate returns a single
// problem.
func (g guarded) Validate(d Draft) (out []Problem) {
	defer func() {
		if v := recover(); v != nil {
			out = []Problem{{Message: "The connector failed on this post."}}
		}
	}()
	out = slices.Clone(g.c.Validate(d))
	for i := range out {
		out[i].Message = text.Line(out[i].Message, maxPublic)
	}
	return out
}

// Derived returns the spec of the picture to send in place of an image. If the connector is not a
// Deriver, or if its Derived panics, needed is false. After such a panic, Prepare rejects the
// image.
func (g guarded) Derived(m Media) (spec picture.Spec, needed bool) {
	d, ok := g.c.(Deriver)
	if !ok {
		return picture.Spec{}, false
	}
	defer func() {
		if v := recover(); v != nil {
			spec, needed = picture.Spec{}, false
		}
	}()
	return d.Derived(m)
}

// Prepare returns a Step whose Handle can be stored. It returns KindContent if the Handle cannot be
// stored, or if the connector panics.
func (g guarded) Prepare(ctx context.Context, s *Session, item Item) (step Step, err error) {
	defer func() {
		if v := recover(); v != nil {
			step, err = Step{}, panicError(v, KindContent, failedPost)
		}
	}()
	step, err = g.c.Prepare(ctx, s, item)
	if err != nil {
		return Step{}, cleanError(err, false)
	}
	step.Handle, err = cleanJSON(step.Handle)
	if err != nil {
		return Step{}, &Error{Kind: KindContent, Public: failedPost, Raw: "the handle cannot be stored", Err: err}
	}
	step.Wait = max(step.Wait, 0)
	return step, nil
}

// Commit returns a reference that can be stored. It returns KindUnknown if the connector panics,
// because the connector may already have made the call.
//
// If the account's grade guarantees deduplication, Commit may reuse a connection. An unknown
// outcome is then harmless, because the item can be reconciled and sent again under the same key.
// For all other accounts, each call opens a new connection.
func (g guarded) Commit(ctx context.Context, s *Session, item Item) (ref Ref, err error) {
	defer func() {
		if v := recover(); v != nil {
			ref, err = Ref{}, panicError(v, KindUnknown, failedCommit)
		}
	}()
	if s.Account.Grade.Deduplicates() {
		ctx = outbound.WithKeptConnections(ctx)
	}
	ref, err = g.c.Commit(ctx, s, item)
	if err != nil {
		return Ref{}, cleanError(err, true)
	}
	return CleanRef(ref), nil
}

// Reconcile returns a reference that can be stored. It returns CannotTell if the outcome is
// invalid. If the connector panics, it returns CannotTell and an error.
func (g guarded) Reconcile(ctx context.Context, s *Session, item Item) (v Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = Verdict{Outcome: CannotTell}, panicError(p, KindTransient, failedReconcile)
		}
	}()
	v, err = g.c.Reconcile(ctx, s, item)
	if err != nil {
		return Verdict{Outcome: CannotTell}, cleanError(err, false)
	}
	switch v.Outcome {
	case Published:
		return Verdict{Outcome: Published, Ref: CleanRef(v.Ref)}, nil
	case NotPublished:
		return Verdict{Outcome: NotPublished}, nil
	default:
		return Verdict{Outcome: CannotTell}, nil
	}
}

// Refresh returns a credential of at most 16 KB and a clean destination, names and picture. If the
// credential is larger, Refresh returns KindTransient, as for any other unusable response, and the
// channel keeps its current credential. It returns KindContent if the connector panics.
func (g guardedRefresher) Refresh(ctx context.Context, s *Session) (out Refreshed, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = Refreshed{}, panicError(v, KindContent, failedPost)
		}
	}()
	out, err = g.r.Refresh(ctx, s)
	if err != nil {
		return Refreshed{}, cleanError(err, false)
	}
	if len(out.Credential) > maxCredential {
		return Refreshed{}, tooLarge(KindTransient, out.Credential)
	}
	out.Destination = text.Line(out.Destination, maxDestination)
	out.Name, out.Profile = text.Line(out.Name, maxName), text.Line(out.Profile, maxName)
	out.Picture = cleanURL(out.Picture)
	return out, nil
}

// tooLarge returns the error for a credential that exceeds the limit. Credentials are limited
// because one is loaded for every post.
func tooLarge(kind Kind, credential []byte) *Error {
	return &Error{
		Kind: kind, Public: "The platform returned credentials that are too large to be stored.",
		Raw: fmt.Sprintf("a credential of %d bytes; at most %d can be stored", len(credential), maxCredential),
	}
}

// The messages shown to users after a panic. Only after a panic in Commit is it unknown whether the
// post was published.
const (
	failedPost      = "The connector failed on this post."
	failedCommit    = "The connector failed while publishing, so this may or may not have been published."
	failedReconcile = "The connector failed while looking for this post."
)

func panicError(v any, kind Kind, public string) *Error {
	return &Error{Kind: kind, Code: "panic", Public: public, Raw: "panic: " + panicText(v), Err: Recovered(v)}
}

// panicText returns the text of a panic. For a value that is neither an error nor a string, it
// returns only the type, because the value may contain a secret.
func panicText(v any) string {
	switch v := v.(type) {
	case error, string:
		return text.Line(fmt.Sprint(v), maxPublic)
	default:
		return fmt.Sprintf("a value of type %T", v)
	}
}

// maxStack is the maximum length in bytes of a panic's stack trace in the log.
const maxStack = 8 << 10

// Recovered converts a value returned by recover into an error. The error contains the panic's text
// and the caller's stack trace, both truncated. A connector that starts a goroutine must recover
// inside it, because a panic there would end the process.
func Recovered(v any) error {
	stack := debug.Stack()
	return fmt.Errorf("panic: %s\n%s", panicText(v), stack[:min(len(stack), maxStack)])
}
