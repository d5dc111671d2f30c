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
	maxUploadAge = 10 * time.Minute // servers delete an unreferenced upload after about an hour
)

// handle records the facets that Prepare has found and the images that it has uploaded. It is
// stored as JSON between calls.
type handle struct {
	// Found is true once the facets have been found and resolved.
	Found  bool     `json:"found"`
	Facets []facet  `json:"facets,omitempty"`
	Images []upload `json:"images,omitempty"`
}

// upload is an uploaded image. Uploads are in the order of the item's media.
type upload struct {
	Blob   blob  `json:"blob"`
	Width  int   `json:"width,omitempty"`
	Height int   `json:"height,omitempty"`
	At     int64 `json:"at"` // Unix seconds
}

// Prepare resolves the mentions, then uploads one image per call. If an upload has become too old,
// Prepare uploads the image again. The blob reference stays the same, because it depends only on
// the image's bytes. Prepare returns errors from the server, and KindContent if Bluesky would
// reject the item.
func (c *Connector) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	cred, h, err := open(s, item)
	if err != nil {
		return connector.Step{}, err
	}
	cl := cred.client(s.Env)
	if !h.Found {
		if err := checkItem(item); err != nil {
			return connector.Step{}, err
		}
		facets, err := cl.resolve(ctx, findFacets(item.Text))
		if err != nil {
			return connector.Step{}, err
		}
		h.Facets, h.Found = facets, true
	}
	if i := h.nextUpload(item, s.Clock.Now()); i < len(item.Media) {
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
	if err != nil {
		return connector.Step{}, err
	}
	if len(raw) > maxHandle {
		const public = "The text has too many links and mentions for one post."
		return connector.Step{}, &connector.Error{Kind: connector.KindContent, Public: public}
	}
	return connector.Step{Ready: h.nextUpload(item, s.Clock.Now()) == len(item.Media), Handle: raw}, nil
}

// nextUpload returns the index of the first image that must be uploaded, or len(item.Media) if
// there is none.
func (h handle) nextUpload(item connector.Item, now time.Time) int {
	for i := range item.Media {
		if i >= len(h.Images) || h.Images[i].stale(now) {
			return i
		}
	}
	return len(item.Media)
}

// checkItem rejects an item that passed Validate but that Bluesky would reject or alter. It does
// not count graphemes, because the server counts them.
func checkItem(item connector.Item) error {
	switch {
	case len(item.Text) > maxBytes:
		return &connector.Error{Kind: connector.KindContent, Public: "The text is too long for Bluesky."}
	case !utf8.ValidString(item.Text):
		return &connector.Error{Kind: connector.KindContent, Public: "The text is not valid UTF-8."}
	case len(item.Media) > maxImages:
		return &connector.Error{Kind: connector.KindContent, Public: "Bluesky accepts at most 4 images."}
	}
	for _, m := range item.Media {
		if m.Video {
			return &connector.Error{Kind: connector.KindContent, Public: "Crier cannot publish videos on Bluesky yet."}
		}
	}
	return nil
}

// resolve replaces the handle in each mention with the account's DID. If no account has the handle,
// the mention stays plain text.
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
		f.Mention, f.DID = "", dids[name]
		if f.DID != "" {
			out = append(out, f)
		}
	}
	return out, nil
}

// didOf returns the DID of a handle's account, or "" if there is no such account.
func (cl client) didOf(ctx context.Context, name string) (string, error) {
	var answer struct{ DID string }
	err := cl.query(ctx, "com.atproto.identity.resolveHandle", url.Values{"handle": {name}}, &answer)
	if e := (*connector.Error)(nil); errors.As(err, &e) && e.Kind == connector.KindContent &&
		(e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(answer.DID, "did:") || len(answer.DID) > maxDID {
		return "", badAnswer(http.StatusOK, errors.New("a handle resolved to something other than a DID"), false)
	}
	return answer.DID, nil
}

// Commit creates the record under the publication's key. The server rejects an existing key unless
// the record is identical. If the key already holds the same post, an earlier call published it and
// Commit succeeds. If the key holds a different post, Commit returns KindContent.
func (c *Connector) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	cred, h, err := open(s, item)
	if err != nil {
		return connector.Ref{}, err
	}
	rec, err := preparedRecord(item, h)
	if err != nil {
		return connector.Ref{}, err
	}
	rkey := recordKey(item.Publication, item.Due)
	body, err := json.Marshal(map[string]any{
		"repo": cred.DID, "collection": collection, "rkey": rkey, "record": rec, "swapRecord": nil,
	})
	if err != nil {
		const public = "This post cannot be written as JSON."
		return connector.Ref{}, &connector.Error{Kind: connector.KindContent, Public: public, Err: err}
	}
	var answer strongRef
	err = cred.client(s.Env).commit(ctx, "com.atproto.repo.putRecord", body, &answer)
	if codeOf(err) == "InvalidSwap" {
		return existing(ctx, s, cred, rkey, rec, err)
	}
	if err != nil {
		return connector.Ref{}, err
	}
	// On a reused connection, an unsolicited response can arrive before the real one.
	if answer.CID == "" || !strings.HasSuffix(answer.URI, "/"+collection+"/"+rkey) {
		err := errors.New("the response to a new record names no CID, or another record")
		return connector.Ref{}, badAnswer(http.StatusOK, err, true)
	}
	return refOf(cred, rkey, answer.CID)
}

// existing reads the record that already exists under rkey. If the record is the same post as rec,
// an earlier Commit published it, and existing returns its Ref. It returns KindContent if the
// record is a different post, and KindUnknown if the record cannot be read.
func existing(
	ctx context.Context, s *connector.Session, cred credential, rkey string, rec json.RawMessage, cause error,
) (connector.Ref, error) {
	there, err := getRecord(ctx, s, cred, rkey)
	switch {
	case err != nil || there.CID == "":
		const public = "Bluesky says that this post already exists, but does not return it."
		return connector.Ref{}, &connector.Error{
			Kind: connector.KindUnknown, Public: public, Err: errors.Join(cause, err),
		}
	case !samePost(there.Value, rec):
		const public = "Another record already has this post's place on Bluesky."
		return connector.Ref{}, &connector.Error{
			Kind: connector.KindContent, Code: "InvalidSwap", Public: public, Err: cause,
		}
	}
	return refOf(cred, rkey, there.CID)
}

// Reconcile reads the record under the publication's key. It returns NotPublished if there is no
// record, and CannotTell if the record is a different post. A record that differs only in createdAt
// counts as the same post, because an earlier Commit may have used a CreatedAt that was then lost.
//
// Reconcile returns an error if the request fails, and KindOperator if the item was not prepared.
func (c *Connector) Reconcile(
	ctx context.Context, s *connector.Session, item connector.Item,
) (connector.Verdict, error) {
	cred, h, err := open(s, item)
	if err != nil {
		return connector.Verdict{}, err
	}
	rec, err := preparedRecord(item, h)
	if err != nil {
		return connector.Verdict{}, err
	}
	rkey := recordKey(item.Publication, item.Due)
	there, err := getRecord(ctx, s, cred, rkey)
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

// stored is a record as returned by the server. The zero value means that there is no record.
type stored struct {
	CID   string
	Value json.RawMessage
}

// getRecord returns the record under rkey, or the zero value if there is no record.
func getRecord(ctx context.Context, s *connector.Session, cred credential, rkey string) (stored, error) {
	var there stored
	query := url.Values{"repo": {cred.DID}, "collection": {collection}, "rkey": {rkey}}
	err := cred.client(s.Env).query(ctx, "com.atproto.repo.getRecord", query, &there)
	if codeOf(err) == "RecordNotFound" {
		return stored{}, nil
	}
	if err != nil {
		return stored{}, err
	}
	if there.CID == "" {
		return stored{}, badAnswer(http.StatusOK, errors.New("a record without a CID"), false)
	}
	return there, nil
}

// open decodes the credential and the handle. It returns KindReauth if it cannot decode the
// credential, and KindOperator if it cannot decode the handle. It returns the zero handle for an
// item without a Handle.
func open(s *connector.Session, item connector.Item) (credential, handle, error) {
	var h handle
	cred, err := readCredential(s)
	if err != nil || len(item.Handle) == 0 {
		return cred, h, err
	}
	if err := json.Unmarshal(item.Handle, &h); err != nil {
		const public = "The stored progress of this post cannot be read."
		return cred, h, &connector.Error{Kind: connector.KindOperator, Public: public, Err: err}
	}
	return cred, h, nil
}

// preparedRecord returns the record for item, or KindOperator if item has not been prepared.
func preparedRecord(item connector.Item, h handle) (json.RawMessage, error) {
	if !h.Found || len(h.Images) != len(item.Media) {
		return nil, &connector.Error{Kind: connector.KindOperator, Public: "This post has not been prepared."}
	}
	return makeRecord(item, h)
}
