package media_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"crier/platform/blob"
	"crier/publishing"
	"crier/publishing/file/picture"
	"crier/tests/fixture"
	"crier/tests/publishtest"
	"crier/tests/s3test"
)

// TestMetadata_StaysWithTheOrganization checks that files are served and published without
// metadata, from a folder and from a bucket, while the organization can read its upload unchanged.
func TestMetadata_StaysWithTheOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bucket, err := blob.NewS3(s3test.Config(s3test.Start(t)), http.DefaultTransport, t.TempDir())
	r.OK(err)
	for name, store := range map[string]blob.Store{"folder": r.Disk, "bucket": bucket} {
		deps := r.Deps
		deps.Blobs = store
		media, mine, theirs := deps.Media(publishtest.Limits), r.Member(), r.Member()
		raw := fixture.Photo(60, 40)
		m, err := media.Upload(t.Context(), mine.Who, "a.jpg", bytes.NewReader(raw))
		r.OK(err)
		again, err := media.Upload(t.Context(), mine.Who, "b.jpg", bytes.NewReader(raw))
		r.OK(err)
		for _, m := range []publishing.Medium{m, again} {
			_, f, err := media.Open(t.Context(), m.Key, m.Name+"."+m.Ext)
			r.OK(err)
			got, err := io.ReadAll(f)
			r.OK(err)
			r.OK(f.Close())
			if int64(len(got)) != m.Size || f.Size() != m.Size || m.Stored != int64(len(raw)) || m.Blob != again.Blob {
				t.Errorf("%s: %d bytes of %d are served; the row has %d of %d", name, len(got), f.Size(), m.Size, m.Stored)
			}
			if bytes.Contains(got, []byte(fixture.Camera)) || bytes.Contains(got, []byte("GPS")) {
				t.Errorf("%s: the file that is served names the camera or the place", name)
			}
			if h, err := picture.Inspect(bytes.NewReader(got)); err != nil || h.Orientation != 6 || h.Width != 40 {
				t.Errorf("%s: the file is %+v, %v; want it upright as before", name, h, err)
			}
			_, f, err = media.Original(t.Context(), mine.Who, m.ID.String())
			r.OK(err)
			if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s: the original has %d bytes, %v; want the %d of the upload", name, len(got), err, len(raw))
			}
			r.OK(f.Close())
			if _, _, err := media.Original(t.Context(), theirs.Who, m.ID.String()); err == nil {
				t.Errorf("%s: another organization reads the original", name)
			}
		}
		var stored int64
		page, err := media.List(t.Context(), mine.Who, publishing.ListMedia{Page: 1})
		r.OK(err)
		for _, m := range page.Media {
			stored = m.Stored
		}
		if fmt.Sprint(len(page.Media), stored) != fmt.Sprint(2, len(raw)) {
			t.Errorf("%s: %d files of %d bytes are listed, want 2 of %d", name, len(page.Media), stored, len(raw))
		}
	}
}
