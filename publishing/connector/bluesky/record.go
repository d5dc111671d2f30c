package bluesky

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"crier/publishing/connector"
)

// record is a post in the format of app.bsky.feed.post.
type record struct {
	Type      string        `json:"$type"`
	Text      string        `json:"text"`
	CreatedAt string        `json:"createdAt"`
	Langs     []string      `json:"langs,omitempty"`
	Facets    []recordFacet `json:"facets,omitempty"`
	Embed     *embed        `json:"embed,omitempty"`
	Reply     *reply        `json:"reply,omitempty"`
}

type recordFacet struct {
	Index    byteSlice `json:"index"`
	Features []feature `json:"features"`
}

type byteSlice struct {
	Start int `json:"byteStart"`
	End   int `json:"byteEnd"`
}

type feature struct {
	Type string `json:"$type"`
	URI  string `json:"uri,omitempty"`
	DID  string `json:"did,omitempty"`
	Tag  string `json:"tag,omitempty"`
}

type embed struct {
	Type   string       `json:"$type"`
	Images []embedImage `json:"images"`
}

type embedImage struct {
	Alt         string       `json:"alt"`
	Image       blob         `json:"image"`
	AspectRatio *aspectRatio `json:"aspectRatio,omitempty"`
}

type aspectRatio struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// blob identifies uploaded bytes by their hash.
type blob struct {
	Type string `json:"$type"`
	Ref  struct {
		Link string `json:"$link"`
	} `json:"ref"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"`
}

type reply struct {
	Root   strongRef `json:"root"`
	Parent strongRef `json:"parent"`
}

// strongRef identifies one version of a record. It is stored in Ref.Data.
type strongRef struct {
	URI string `json:"uri"`
	CID string `json:"cid"`
}

// makeRecord builds the record for an item from the item and its handle. The same input always
// yields the same bytes.
func makeRecord(item connector.Item, h handle) (json.RawMessage, error) {
	rec := record{Type: collection, Text: item.Text, CreatedAt: item.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z")}
	for _, f := range h.Facets {
		rec.Facets = append(rec.Facets, recordFacet{
			Index: byteSlice{Start: f.Start, End: f.End}, Features: []feature{f.feature()},
		})
	}
	if len(h.Images) > 0 {
		rec.Embed = &embed{Type: "app.bsky.embed.images"}
	}
	for i, up := range h.Images {
		rec.Embed.Images = append(rec.Embed.Images, up.embed(item.Media[i].Alt))
	}
	var err error
	if rec.Langs, err = langsOf(item.Settings); err != nil {
		return nil, err
	}
	if rec.Reply, err = replyTo(item); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rec); err != nil {
		const public = "This post cannot be written as JSON."
		return nil, &connector.Error{Kind: connector.KindContent, Public: public, Err: err}
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func (f facet) feature() feature {
	const facetType = "app.bsky.richtext.facet#"
	switch {
	case f.URI != "":
		return feature{Type: facetType + "link", URI: f.URI}
	case f.DID != "":
		return feature{Type: facetType + "mention", DID: f.DID}
	default:
		return feature{Type: facetType + "tag", Tag: f.Tag}
	}
}

func (u upload) embed(alt string) embedImage {
	out := embedImage{Alt: alt, Image: u.Blob}
	if u.Width > 0 && u.Height > 0 {
		out.AspectRatio = &aspectRatio{Width: u.Width, Height: u.Height}
	}
	return out
}

func replyTo(item connector.Item) (*reply, error) {
	root, parent := item.Root, item.Parent
	if root == nil && parent == nil {
		return nil, nil
	}
	if root == nil {
		root = parent
	}
	if parent == nil {
		parent = root
	}
	var out reply
	err := errors.Join(out.Root.read(root), out.Parent.read(parent))
	if err != nil {
		const public = "The stored reference to the post before this one cannot be read."
		return nil, &connector.Error{Kind: connector.KindOperator, Public: public, Err: err}
	}
	return &out, nil
}

func (r *strongRef) read(ref *connector.Ref) error {
	if err := json.Unmarshal(ref.Data, r); err != nil {
		return err
	}
	if r.URI == "" || r.CID == "" {
		return errors.New("a reference lacks its URI or its CID")
	}
	return nil
}

// samePost returns true if two records have equal values. It ignores JSON formatting and createdAt,
// because a post is identified by its record key, not by its time.
func samePost(a, b json.RawMessage) bool {
	var x, y any
	if decodeExactly(a, &x) != nil || decodeExactly(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(withoutCreatedAt(x), withoutCreatedAt(y))
}

func withoutCreatedAt(doc any) any {
	if record, ok := doc.(map[string]any); ok {
		delete(record, "createdAt")
	}
	return doc
}

func decodeExactly(raw json.RawMessage, into *any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// refOf returns the Ref of a published record. Its URL contains the DID, because a handle can
// change and later belong to another account.
func refOf(cred credential, rkey, cid string) (connector.Ref, error) {
	uri := "at://" + cred.DID + "/" + collection + "/" + rkey
	data, err := json.Marshal(strongRef{URI: uri, CID: cid})
	return connector.Ref{ID: uri, URL: "https://bsky.app/profile/" + cred.DID + "/post/" + rkey, Data: data}, err
}

// stale returns true if an upload is so old that the server may soon delete it. Servers delete
// uploads to which no record refers.
func (u upload) stale(now time.Time) bool { return now.Sub(time.Unix(u.At, 0)) > maxUploadAge }
