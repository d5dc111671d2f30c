package contract

import (
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestFile_OnAnotherServerIsRefused uses the paths of our files on other hosts. The service must
// not take them for its own files.
func TestFile_OnAnotherServerIsRefused(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c := o.channel(t, "A")
	url := o.stored(t, "a.png", png(t)).URL
	path := strings.TrimPrefix(url, base)
	for name, address := range map[string]string{
		"another host":      "http://evil.example" + path,
		"another port":      base + ":8080" + path,
		"another scheme":    strings.Replace(base, "http:", "https:", 1) + path,
		"a host below ours": "http://files.crier.test" + path,
		"no scheme":         "//evil.example" + path,
		"a longer path":     base + "/more" + path,
	} {
		for _, field := range []string{"path", "url"} {
			a := o.do(t, http.MethodPost, "/posts", later(c.id, part("x", m{field: address})))
			const want = "is not on this service: upload it first with POST /upload, " +
				"or with POST /upload-from-url from its address."
			if got := a.refusal(t, http.StatusBadRequest); !strings.Contains(got, want) {
				t.Errorf("%s as %s is refused with %q, want %q", name, field, got, want)
			}
		}
	}
	for name, address := range map[string]string{"its own address": url, "its own path": path} {
		a := o.do(t, http.MethodPost, "/posts", later(c.id, part("x", m{"path": address})))
		if a.Status != http.StatusCreated {
			t.Errorf("%s is answered with %v, want 201", name, a)
		}
	}
}

// TestUpload_LeavesNoUnrecordedFile checks that an upload that cannot be recorded leaves no file,
// because nobody could find or delete it.
func TestUpload_LeavesNoUnrecordedFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	r := start(t, map[string]string{"CRIER_HOME": home})
	o := r.organization(t)
	stored := func() (files []string) {
		t.Helper()
		err := filepath.WalkDir(filepath.Join(home, "files"), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.IsDir() {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	r.as(t, "none", "", `create function full_disk() returns trigger language plpgsql as $$
		begin raise exception 'the disk is full' using errcode = '53100'; end $$;
		create trigger full_disk before insert on media execute function full_disk()`)
	r.expected.Store("the disk is full")
	if a := o.upload(t, "a.png", png(t)); a.Status < 500 {
		t.Fatalf("an upload that cannot be recorded is answered with %v, want 5xx", a)
	}
	if left := stored(); len(left) > 0 {
		t.Errorf("the files %v are left, want none", left)
	}
	r.as(t, "none", "", "drop trigger full_disk on media")
	o.upload(t, "a.png", png(t)).want(t, http.StatusCreated)
	if left := stored(); len(left) != 1 {
		t.Errorf("one upload stored %v, want one file", left)
	}
}

// TestAccessToken_RenewedForTextPost publishes a text with an expired token. On a platform of grade
// A, a text has no prepare step that would renew the token.
func TestAccessToken_RenewedForTextPost(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"SETTLE_DELAY": "1s"})
	for _, grade := range []string{"A", "C", "E"} {
		t.Run(grade, func(t *testing.T) {
			t.Parallel()
			o := r.organization(t)
			c := o.channel(t, grade)
			r.fault(t, c, "expire_token", posting(), nil)
			o.publishedOnce(t, c, o.create(t, now(c.id, part("renewed"))), "renewed")
		})
	}
}
