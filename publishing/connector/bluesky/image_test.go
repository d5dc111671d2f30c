package bluesky

import (
	"errors"
	"io"
	"strings"
	"testing"

	"crier/publishing/connector"
)

func TestDerived_NeededOnlyAboveLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		m      connector.Media
		needed bool
	}{
		"at the limit":         {m: connector.Media{ContentType: "image/png", Size: maxBlob}, needed: false},
		"a large image":        {m: connector.Media{ContentType: "image/png", Size: maxBlob + 1}, needed: true},
		"a large GIF":          {m: connector.Media{ContentType: "image/gif", Size: maxBlob + 1}, needed: false},
		"a video of any size":  {m: connector.Media{ContentType: "video/mp4", Size: maxBlob + 1, Video: true}, needed: false},
		"a JPEG that is empty": {m: connector.Media{ContentType: "image/jpeg"}, needed: false},
	} {
		if spec, needed := New().Derived(tc.m); needed != tc.needed || needed && spec.MaxBytes != maxBlob {
			t.Errorf("%s: got %v, needed %t, want needed %t", name, spec, needed, tc.needed)
		}
	}
}

// The engine scales large images down, so an image that is still too large is refused without
// opening it.
func TestDisplaySize_RefusesWrongSizeWithoutReading(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int64{"a large image": maxBlob + 1, "an empty one": 0} {
		_, _, err := displaySize(connector.Media{Name: "a.png", Size: size, Open: func() (io.ReadCloser, error) {
			t.Errorf("%s is opened, want it refused unread", name)
			return nil, io.ErrUnexpectedEOF
		}})
		var e *connector.Error
		if !errors.As(err, &e) || e.Kind != connector.KindContent || e.Public == "" {
			t.Errorf("%s: got %v, want KindContent", name, err)
		}
	}
}

func TestDisplaySize_ReadErrorIsTransient(t *testing.T) {
	t.Parallel()
	away := func() (io.ReadCloser, error) { return io.NopCloser(broken{}), nil }
	_, _, err := displaySize(connector.Media{Size: 10, Open: away})
	var e *connector.Error
	if !errors.As(err, &e) || e.Kind != connector.KindTransient {
		t.Errorf("got %v, want KindTransient", err)
	}
	text := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }
	if w, h, err := displaySize(connector.Media{Size: 5, Width: 3, Height: 2, Open: text}); err != nil || w != 3 || h != 2 {
		t.Errorf("bytes that are no image: got %d x %d, %v; want 3 x 2", w, h, err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the disk is away") }
