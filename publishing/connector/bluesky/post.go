package bluesky

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"crier/publishing/connector"
)

const (
	maxHandle    = 8 << 10 // bytes
	maxDID       = 2048
	keepsUploads = 10 * time.Minute // a server keeps an upload that no record names for about an hour
)

// handle is all that Prepare decides and the item does not tell.
type handle struct {
	Found  bool     `json:"found"` // facets are looked for and resolved
	Facets []facet  `json:"facets,omitempty"`
	Images []upload `json:"images,omitempty"`
}

// upload is an image on the server, in the order of the item's media.
type upload struct {
	Blob   blob  `json:"blob"`
	Width  int   `json:"width,omitempty"`
	Height int   `json:"height,omitempty"`
	At     int64 `json:"at"` // Unix seconds
}

// Prepare looks up who is mentioned, then uploads one image a call. Uploads that waited long are made again: equal bytes have an equal name.
func (c *Connector) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	cred, h, err := open(s, item)
	if err != nil {
		return connector.Step{}, err
	}
	cl := cred.client(s.Env)
	if !h.Found {
		if err := fit(item); err != nil {
			return connector.Step{}, err
		}
		if h.Facets, err = cl.resolve(ctx, findFacets(item.Text)); err != nil {
			return connector.Step{}, err
		}
		h.Found = true
	}
	if i := h.next(item, s.Clock.Now()); i < len(item.Media) {
		up, err := c.upload(ctx, cl, item.Media[i])
		if err != nil {
			return connector.Step{}, err
		}
		h.Images = append(append(h.Images[:i:i], up), h.Images[min(i+1, len(h.Images)):]...)
	}
	if _, err := makeRecord(item, h); err != nil {
		return connector.Step{}, err
	}
	raw, err := json.Marshal(h)
	if err == nil && len(raw) > maxHandle {
		return connector.Step{}, &connector.Error{Kind: connector.KindContent, Public: "The text has too many links and mentions for one post."}
	}
	return connector.Step{Ready: h.next(item, s.Clock.Now()) == len(item.Media), Handle: raw}, err
}

// next is the first medium that must be uploaded, or their number.
func (h handle) next(item connector.Item, now time.Time) int {
	for i := range item.Media {
		if i >= len(h.Images) || h.Images[i].stale(now) {
			return i
		}
	}
	return len(item.Media)
}

// fit refuses what would come out wrong though Validate let it in; the server counts the graphemes itself.
func fit(item connector.Item) error {
	switch {
	case len(item.Text) > maxBytes:
		return &connector.Error{Kind: connector.KindContent, Public: "The text is too long for Bluesky."}
	case !utf8.ValidString(item.Text):
		return &connector.Error{Kind: connector.KindContent, Public: "The text is not valid UTF-8."}
	case len(item.Media) > maxImages:
		return &connector.Error{Kind: connector.KindContent, Public: "Bluesky takes at most 4 images."}
	}
	for _, m := range item.Media {
		if m.Video {
			return &connector.Error{Kind: connector.KindContent, Public: "Crier cannot publish videos on Bluesky yet."}
		}
	}
	return nil
}

// resolve asks for the account behind every mention. A handle that nobody has stays plain text.
func (cl client) resolve(ctx context.Context, found []facet) ([]facet, error) {
	dids := map[string]string{}
	var out []facet
	for _, f := range found {
		if f.Mention == "" {
			out = append(out, f)
			continue
		}
		name := strings.ToLower(f.Mention)
		if _, asked := dids[name]; !asked {
			did, err := cl.didOf(ctx, name)
			if err != nil {
				return nil, err
			}
			dids[name] = did
		}
		if f.Mention, f.DID = "", dids[name]; f.DID != "" {
			out = append(out, f)
		}
	}
	return out, nil
}

// didOf gives the account of a handle, "" when there is none.
func (cl client) didOf(ctx context.Context, name string) (string, error) {
	var said struct{ DID string }
	err := cl.query(ctx, "com.atproto.identity.resolveHandle", url.Values{"handle": {name}}, &said)
	if e := (*connector.Error)(nil); errors.As(err, &e) && e.Kind == connector.KindContent && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound) {
		return "", nil
	}
	if err == nil && (!strings.HasPrefix(said.DID, "did:") || len(said.DID) > maxDID) {
		err = unreadable(http.StatusOK, errors.New("a handle resolves to what is no DID"), false)
	}
	return said.DID, err
}

// Commit creates the record under the publication's own key. The server refuses a key that is taken, unless by the very same record.
func (c *Connector) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	cred, h, err := open(s, item)
	if err != nil {
		return connector.Ref{}, err
	}
	rec, err := finished(item, h)
	if err != nil {
		return connector.Ref{}, err
	}
	rkey := recordKey(item.Publication, item.Due)
	body, err := json.Marshal(map[string]any{"repo": cred.DID, "collection": collection, "rkey": rkey, "record": rec, "swapRecord": nil})
	if err != nil {
		return connector.Ref{}, &connector.Error{Kind: connector.KindContent, Public: "This post cannot be written as JSON.", Err: err}
	}
	var said strongRef
	err = cred.client(s.Env).commit(ctx, "com.atproto.repo.putRecord", body, &said)
	if codeOf(err) == "InvalidSwap" {
		return taken(ctx, s, cred, rkey, rec, err)
	}
	if err != nil {
		return connector.Ref{}, err
	}
	// An answer that a server sends unasked may come before ours on a kept connection.
	if said.CID == "" || !strings.HasSuffix(said.URI, "/"+collection+"/"+rkey) {
		return connector.Ref{}, unreadable(http.StatusOK, errors.New("the answer to a new record names no CID, or another record"), true)
	}
	return refOf(cred, rkey, said.CID)
}

// taken looks at the record that has our key already: ours from an earlier try, perhaps with another createdAt, or
// another record.
func taken(ctx context.Context, s *connector.Session, cred credential, rkey string, rec json.RawMessage, cause error) (connector.Ref, error) {
	there, err := look(ctx, s, cred, rkey)
	switch {
	case err != nil || there.CID == "":
		return connector.Ref{}, &connector.Error{Kind: connector.KindUnknown, Public: "Bluesky says that this post exists already, but does not show it.", Err: errors.Join(cause, err)}
	case !samePost(there.Value, rec):
		return connector.Ref{}, &connector.Error{Kind: connector.KindContent, Code: "InvalidSwap", Public: "Another record has this post's place on Bluesky already.", Err: cause}
	}
	return refOf(cred, rkey, there.CID)
}

// Reconcile reads the record under the publication's key. A record of other content proves nothing about ours; one that
// differs in createdAt alone is ours, from a try whose trace was lost.
func (c *Connector) Reconcile(ctx context.Context, s *connector.Session, item connector.Item) (connector.Verdict, error) {
	cred, h, err := open(s, item)
	if err != nil {
		return connector.Verdict{}, err
	}
	rec, err := finished(item, h)
	if err != nil {
		return connector.Verdict{}, err
	}
	rkey := recordKey(item.Publication, item.Due)
	there, err := look(ctx, s, cred, rkey)
	switch {
	case err != nil:
		return connector.Verdict{}, err
	case there.CID == "":
		return connector.Verdict{Outcome: connector.NotPublished}, nil
	case !samePost(there.Value, rec):
		return connector.Verdict{Outcome: connector.CannotTell}, nil
	}
	ref, err := refOf(cred, rkey, there.CID)
	return connector.Verdict{Outcome: connector.Published, Ref: ref}, err
}

// stored is a record as the server shows it; the zero value is none.
type stored struct {
	CID   string
	Value json.RawMessage
}

func look(ctx context.Context, s *connector.Session, cred credential, rkey string) (stored, error) {
	var there stored
	query := url.Values{"repo": {cred.DID}, "collection": {collection}, "rkey": {rkey}}
	err := cred.client(s.Env).query(ctx, "com.atproto.repo.getRecord", query, &there)
	if codeOf(err) == "RecordNotFound" {
		return stored{}, nil
	}
	if err == nil && there.CID == "" {
		err = unreadable(http.StatusOK, errors.New("a record without a CID"), false)
	}
	return there, err
}

// open reads what the engine keeps of a channel and of an item.
func open(s *connector.Session, item connector.Item) (credential, handle, error) {
	var h handle
	cred, err := readCredential(s)
	if err != nil || len(item.Handle) == 0 {
		return cred, h, err
	}
	if err := json.Unmarshal(item.Handle, &h); err != nil {
		return cred, h, &connector.Error{Kind: connector.KindOperator, Public: "The stored progress of this post cannot be read.", Err: err}
	}
	return cred, h, nil
}

// finished is the record of an item that is prepared.
func finished(item connector.Item, h handle) (json.RawMessage, error) {
	if !h.Found || len(h.Images) != len(item.Media) {
		return nil, &connector.Error{Kind: connector.KindOperator, Public: "This post is not prepared."}
	}
	return makeRecord(item, h)
}
