package contract

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	stdpng "image/png"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"crier/tests/s3test"
)

// library is the response of GET /media.
type library struct {
	Pages   int
	Results []medium
}

// box returns a box of an MP4 file.
func box(kind string, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(all)+8)), append([]byte(kind), all...)...)
}

// sized returns a PNG of the given width. Each width gives different bytes.
func sized(t *testing.T, side int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := stdpng.Encode(&b, image.NewGray(image.Rect(0, 0, side, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"files are listed in pages and searched":        testListed,
		"a file is deleted unless a post needs it":      testDeleted,
		"a deleted file leaves a draft that cannot run": testDeletedOfDraft,
		"the same bytes are files apart":                testSameBytes,
		"posts get the alternative text of a file":      testAlt,
		"own videos are played without a session":       testOwnStream,
	})
}

func testListed(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	members(t, o.get(t, "/media").want(t, http.StatusOK).raw(), "pages", "results")
	for i := range 20 {
		o.stored(t, fmt.Sprintf("pic%%_%d.png", i+1), sized(t, i+1))
	}
	first, second := read[library](t, o.get(t, "/media")), read[library](t, o.get(t, "/media?page=2").want(t, http.StatusOK))
	if first.Pages != 2 || len(first.Results) != 18 || len(second.Results) != 2 {
		t.Fatalf("%d pages, of %d and %d files, want 2, of 18 and 2", first.Pages, len(first.Results), len(second.Results))
	}
	members(t, o.get(t, "/media?page=2&search=pic%25_1").want(t, http.StatusOK).raw(), "pages", "results")
	if got := read[library](t, o.get(t, "/media?search=C%25_1")); got.Pages != 1 || len(got.Results) != 11 {
		t.Errorf("the search finds %d files on %d pages, want 11 on 1", len(got.Results), got.Pages)
	}
	if got := read[library](t, o.get(t, "/media?search=_c")); len(got.Results) != 0 {
		t.Errorf("a search with a wildcard finds %d files, want none", len(got.Results))
	}
	if got := read[library](t, o.get(t, "/media?page=9")); got.Pages != 2 || len(got.Results) != 0 {
		t.Errorf("a page behind the last has %d files of %d pages, want none of 2", len(got.Results), got.Pages)
	}
	for _, query := range []string{"page=0", "page=-1", "page=x", "page=1000001", "search=" + strings.Repeat("x", 256)} {
		o.get(t, "/media?"+query).refusal(t, http.StatusBadRequest)
	}
	if other := read[library](t, r.organization(t).get(t, "/media")); other.Pages != 0 || len(other.Results) != 0 {
		t.Errorf("another organization sees %d files", len(other.Results))
	}
}

func testDeleted(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	f := o.stored(t, "a.png", png(t))
	r.organization(t).do(t, http.MethodDelete, "/media/"+f.ID, nil).refusal(t, http.StatusNotFound)
	post := o.create(t, later(c.id, part("x", f)))
	o.do(t, http.MethodDelete, "/media/"+f.ID, nil).refusal(t, http.StatusConflict)
	o.deletes(t, "/posts/", post)
	members(t, o.do(t, http.MethodDelete, "/media/"+f.ID, nil).want(t, http.StatusOK).raw(), "id")
	o.do(t, http.MethodDelete, "/media/"+f.ID, nil).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodDelete, "/media/x", nil).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodPost, "/posts", later(c.id, part("x", f))).refusal(t, http.StatusBadRequest)
	if got := read[library](t, o.get(t, "/media")); len(got.Results) != 0 {
		t.Errorf("%d files are listed, want none", len(got.Results))
	}
	o.prefix, o.key = "", ""
	o.get(t, strings.TrimPrefix(f.URL, base)).refusal(t, http.StatusNotFound)
}

func testDeletedOfDraft(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	f := o.stored(t, "a.png", png(t))
	draft := later(c.id, part("x", f))
	draft["type"] = "draft"
	id := o.create(t, draft)
	o.do(t, http.MethodDelete, "/media/"+f.ID, nil).want(t, http.StatusOK)
	o.changeStatus(t, id, m{"status": "schedule"}).refusal(t, http.StatusBadRequest)
	o.wantState(t, id, "DRAFT")
}

func testSameBytes(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	first := o.stored(t, "a.png", png(t))
	second := o.stored(t, "b.png", png(t))
	if second.ID == first.ID || second.URL == first.URL || second.Name != "b.png" {
		t.Errorf("the same bytes are %+v and %+v, want two files", first, second)
	}
	if other := r.organization(t).stored(t, "a.png", png(t)); other.ID == first.ID || other.URL == first.URL {
		t.Error("another organization got the same file")
	}
	o.do(t, http.MethodDelete, "/media/"+first.ID, nil).want(t, http.StatusOK)
	served(t, org{rig: o.rig, prefix: strings.TrimPrefix(second.URL, base)}, png(t), "image/png")
	o.do(t, http.MethodDelete, "/media/"+second.ID, nil).want(t, http.StatusOK)
	again := o.stored(t, "a.png", png(t))
	if again.ID == first.ID || again.URL == first.URL {
		t.Error("a deleted file came back")
	}
	o.prefix, o.key = "", ""
	served(t, org{rig: o.rig, prefix: strings.TrimPrefix(again.URL, base)}, png(t), "image/png")
}

func testAlt(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	f := o.stored(t, "a.png", png(t))
	signedIn := o.dashboard(t)
	changed := signedIn(http.MethodPost, "/media/information", m{"id": f.ID, "alt": "A cat"}).want(t, http.StatusCreated)
	members(t, changed.raw(), "id", "url", "path", "name", "originalName?", "thumbnail", "alt")
	listed := signedIn(http.MethodGet, "/media", nil).want(t, http.StatusOK)
	if !strings.Contains(listed.Body, `"alt":"A cat"`) {
		t.Errorf("the list is %s, want the text", listed.Body)
	}
	full := o.post(t, o.create(t, later(c.id, part("x", f))))
	own := o.post(t, o.create(t, later(c.id, part("y", m{"id": f.ID, "alt": "My cat"}))))
	for want, got := range map[string]record{"A cat": full, "My cat": own} {
		if alt := got.Media[0].Alt; alt == nil || *alt != want {
			t.Errorf("a post has the media %+v, want the text %q", got.Media, want)
		}
	}
	for name, body := range map[string]any{
		"a long text": m{"id": f.ID, "alt": strings.Repeat("x", 2001)}, "no id": m{"alt": "x"}, "a number": m{"id": f.ID, "alt": 1},
	} {
		if a := signedIn(http.MethodPost, "/media/information", body); a.Status != http.StatusBadRequest {
			t.Errorf("%s is answered with %v, want 400", name, a)
		}
	}
	signedIn(http.MethodPost, "/media/information", m{"id": "x", "alt": "x"}).refusal(t, http.StatusNotFound)
	signedIn(http.MethodDelete, "/media/"+f.ID, nil).refusal(t, http.StatusConflict)
}

func testOwnStream(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	data := append(mp4(), box("moov", box("mvhd", make([]byte, 100)))...)
	f := o.stored(t, "a.mp4", data)
	o.key = ""
	o.prefix = "/public/stream?url=" + url.QueryEscape(f.URL)
	served(t, o, data, "video/mp4")
	o.prefix = "/public/stream"
	for _, address := range []string{"https://example.com/a.mp4", f.URL + "x", "", strings.Replace(f.URL, "/files/", "/files/x", 1)} {
		if a := o.get(t, "?url="+url.QueryEscape(address)); a.Status != http.StatusBadRequest && a.Status != http.StatusNotFound {
			t.Errorf("%q is answered with %v, want 400 or 404", address, a)
		}
	}
	limited := false
	for range 40 {
		limited = limited || o.get(t, "").Status == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("50 requests of an address within a minute are answered, want 30")
	}
}

// TestMedia_InBucket runs the tests of files with files stored in a bucket.
func TestMedia_InBucket(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"MAX_IMAGE_BYTES": "20000", "MAX_VIDEO_BYTES": "40000", "UPLOAD_BODY_LIMIT": "100000"}
	maps.Copy(settings, s3test.Env(s3test.Start(t)))
	subjects(t, start(t, settings), map[string]subject{
		"accepted files are stored, served and published": testAccepted,
		"other files are refused":                         testRefused,
		"a file with a wrong key or name is not found":    testWrongFile,
		"a file is deleted unless a post needs it":        testDeleted,
		"the same bytes are files apart":                  testSameBytes,
	})
}
