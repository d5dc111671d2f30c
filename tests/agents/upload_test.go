package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/tenancy"
	"crier/tests/call"
)

// uploadAddress is the output of service_upload_from_url without a URL.
type uploadAddress struct {
	UploadURL, ExpiresAt, Method, Field, Curl string
}

func (a agent) uploadAddress(t testing.TB) (out uploadAddress) {
	t.Helper()
	a.must(t, &out, "service_upload_from_url", m{})
	if !regexp.MustCompile(`^`+regexp.QuoteMeta(a.base)+`/upload/cru_\w{43}$`).MatchString(out.UploadURL) ||
		out.Method != "POST" || out.Field != "file" || out.Curl != "curl -F file=@FILE "+out.UploadURL {
		t.Fatalf("got %+v, want an upload address", out)
	}
	return out
}

// put sends a file to an upload address as curl -T does: as the body, without a type.
func put(t testing.TB, address string, file []byte, headers ...string) call.Answer {
	t.Helper()
	a, err := call.Do(t.Context(), browserless(), http.MethodPut, address, file, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// stored is an uploaded file.
type stored struct{ ID, Path, URL, Name string }

// TestUpload_LocalFile uploads a file that only the agent has, and attaches it to a post.
func TestUpload_LocalFile(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	c := p.connect(t)
	for name, token := range map[string]string{"an access token": p.grant(t, s.native(t), nil).Access, "a key": p.key(t)} {
		a := agent{base: s.base, token: token}
		made := a.uploadAddress(t)
		if left := untilDate(t, made.ExpiresAt); left < 13*time.Minute || left > 15*time.Minute {
			t.Errorf("%s: the address works for %s, want 15 minutes", name, left)
		}
		asURL := m{"url": made.UploadURL}
		if got := a.call(t, "service_upload_from_url", asURL).mistake(t); got.Field != "url" || !strings.Contains(got.Errors, "No file has been uploaded") {
			t.Errorf("%s: before the upload: got %+v, want an error that says so", name, got)
		}
		var form bytes.Buffer
		fields := multipart.NewWriter(&form)
		part, err := fields.CreateFormFile("file", "my cat.png")
		if err == nil {
			_, err = part.Write(pixel)
		}
		if err == nil {
			err = fields.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := call.Do(t.Context(), browserless(), made.Method, made.UploadURL, form.Bytes(), "Content-Type", fields.FormDataContentType())
		if err != nil {
			t.Fatal(err)
		}
		var file, again stored
		if err := answer.Into(&file); err != nil || answer.Status != http.StatusCreated || file.ID == "" || file.Path == "" {
			t.Fatalf("%s: the upload: got %v, want the stored file", name, answer)
		}
		a.must(t, &again, "service_upload_from_url", asURL)
		if again != file {
			t.Errorf("%s: the tool returns %+v, want %+v", name, again, file)
		}
		entry := postEntry("draft", tomorrow(), c.id, unique("with a picture "))
		entry["postsAndComments"] = []m{{"content": unique("with a picture "), "attachments": []string{file.ID}}}
		var posts []struct{ PostID string }
		a.must(t, &posts, "service_create_post", m{"socialPost": []m{entry}})
		var post json.RawMessage
		a.must(t, &post, "service_get_post", m{"id": posts[0].PostID})
		if !strings.Contains(string(post), file.ID) && !strings.Contains(string(post), file.Path) {
			t.Errorf("%s: the post is %s, want the picture in it", name, post)
		}
	}
}

func untilDate(t testing.TB, date string) time.Duration {
	t.Helper()
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(at)
}

// media returns the number of files of an organization.
func (a agent) media(t testing.TB) int {
	t.Helper()
	var out struct{ Results []stored }
	rest{base: a.base, credential: a.token}.want(t, &out, http.MethodGet, "/media?page=1", nil)
	return len(out.Results)
}

func TestAttack_UploadAddress(t *testing.T) {
	t.Parallel()
	s := common(t)
	second := s.second(t)
	p := s.owner(t)
	a := agent{base: s.base, token: p.grant(t, s.native(t), nil).Access}
	attacks(t, map[string]func(t *testing.T){
		"two uploads at once, to two processes": func(t *testing.T) {
			owner := s.owner(t)
			a := agent{base: s.base, token: owner.key(t)}
			made := a.uploadAddress(t)
			var all sync.WaitGroup
			answers := make([]call.Answer, 8)
			for i := range answers {
				address := made.UploadURL
				if i%2 == 1 {
					address = strings.Replace(address, s.base, second, 1)
				}
				all.Go(func() { answers[i] = put(t, address, pixel) })
			}
			all.Wait()
			var file stored
			statuses := map[int]int{}
			for _, x := range answers {
				if statuses[x.Status]++; x.Status == http.StatusCreated {
					decode(t, x.Body, &file)
				}
			}
			if statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != len(answers)-1 || a.media(t) != 1 {
				t.Errorf("got the statuses %v and %d files, want one file", statuses, a.media(t))
			}
			if got := put(t, made.UploadURL, pixel); got.Status != http.StatusConflict || !strings.Contains(got.Body, file.ID) {
				t.Errorf("a later upload: got %v, want 409 with the id %s", got, file.ID)
			}
		},
		"requests that upload nothing": func(t *testing.T) {
			made := a.uploadAddress(t)
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPatch} {
				got, err := call.Do(t.Context(), browserless(), method, made.UploadURL, nil)
				if err != nil || got.Status != http.StatusMethodNotAllowed {
					t.Errorf("%s: got %v and %v, want 405", method, got, err)
				}
			}
			for name, body := range map[string][]byte{"nothing": nil, "text": []byte("<html>"), "a broken picture": pixel[:20]} {
				wantRefusal(t, name, put(t, made.UploadURL, body), http.StatusBadRequest)
			}
			cutUpload(t, s.address, strings.TrimPrefix(made.UploadURL, s.base), pixel)
			if got := put(t, made.UploadURL, pixel, "Origin", "https://evil.example", "X-Forwarded-Host", "evil.example"); got.Status != http.StatusCreated || strings.Contains(got.Body, "evil") {
				t.Errorf("the upload after them: got %v, want success", got)
			}
		},
		"another organization": func(t *testing.T) {
			made := a.uploadAddress(t)
			other := agent{base: s.base, token: s.owner(t).key(t)}
			want := func(when string) {
				t.Helper()
				if got := other.call(t, "service_upload_from_url", m{"url": made.UploadURL}).mistake(t); !strings.Contains(got.Errors, "There is no such upload address") {
					t.Errorf("%s: got %+v, want that there is none", when, got)
				}
			}
			want("before the upload")
			// Other credentials that are sent along do not matter.
			if got := put(t, made.UploadURL, pixel, "Authorization", other.token, "auth", "x"); got.Status != http.StatusCreated || other.media(t) != 0 {
				t.Errorf("got %v and %d files of the other organization, want success and none", got, other.media(t))
			}
			want("after the upload")
		},
		"guesses": func(t *testing.T) {
			made := a.uploadAddress(t)
			for _, guess := range []string{made.UploadURL + "x", made.UploadURL[:len(made.UploadURL)-1], s.base + "/upload/x", s.base + "/upload/" + a.token, s.base + "/upload/%00", made.UploadURL + "/x"} {
				wantRefusal(t, guess, put(t, guess, pixel), http.StatusNotFound)
			}
		},
		"a revoked grant": func(t *testing.T) {
			owner := s.owner(t)
			a := agent{base: s.base, token: owner.grant(t, s.native(t), nil).Access}
			made := a.uploadAddress(t)
			for _, app := range owner.approvedApps(t) {
				owner.want(t, nil, http.MethodDelete, "/user/approved-apps/"+app.id, nil)
			}
			wantEnded(t, s.base, second, made, http.StatusUnauthorized)
		},
		"a member who was removed": func(t *testing.T) {
			owner := s.owner(t)
			member := owner.colleague(t, tenancy.RoleUser)
			made := agent{base: s.base, token: member.grant(t, s.native(t), nil).Access}.uploadAddress(t)
			owner.want(t, nil, http.MethodDelete, "/settings/team/"+member.self(t), nil)
			wantEnded(t, s.base, second, made, http.StatusUnauthorized)
		},
		"a deleted key": func(t *testing.T) {
			owner := s.owner(t)
			full, key, err := s.accounts.CreateKey(t.Context(), owner.principal, tenancy.NewKey{Name: "key"})
			if err != nil {
				t.Fatal(err)
			}
			made := agent{base: s.base, token: full}.uploadAddress(t)
			owner.want(t, nil, http.MethodDelete, "/settings/api-keys/"+key.ID.String(), nil)
			wantEnded(t, s.base, second, made, http.StatusUnauthorized)
		},
		"a suspended organization": func(t *testing.T) {
			owner := s.owner(t)
			made := agent{base: s.base, token: owner.key(t)}.uploadAddress(t)
			if err := s.accounts.Suspend(t.Context(), owner.principal.Org.String(), true); err != nil {
				t.Fatal(err)
			}
			wantEnded(t, s.base, second, made, http.StatusForbidden)
		},
		"the token in the log": func(t *testing.T) {
			made := a.uploadAddress(t)
			_, token, _ := strings.Cut(made.UploadURL, "/upload/")
			for range 2 {
				put(t, made.UploadURL, pixel)
			}
			put(t, made.UploadURL+"x", pixel)
			a.call(t, "service_upload_from_url", m{"url": made.UploadURL})
			if strings.Contains(s.log.text(), token) {
				t.Error("the log contains the token of an upload address")
			}
		},
	})
}

// TestUpload_SurvivesKills kills the process while a file arrives and once it is stored.
func TestUpload_SurvivesKills(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := agent{base: s.base, token: s.owner(t).key(t)}
	made := a.uploadAddress(t)
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	body := slices.Concat(pixel, make([]byte, 64<<10))
	path := strings.TrimPrefix(made.UploadURL, s.base)
	if _, err := fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body)+1, body); err != nil {
		t.Fatal(err)
	}
	s.kill()
	s.restart(t)
	var file, again stored
	got := put(t, made.UploadURL, pixel)
	if err := got.Into(&file); err != nil || got.Status != http.StatusCreated {
		t.Fatalf("the upload after a kill: got %v, want success", got)
	}
	s.kill()
	s.restart(t)
	if got := put(t, made.UploadURL, pixel); got.Status != http.StatusConflict || !strings.Contains(got.Body, file.ID) {
		t.Errorf("an upload after the next kill: got %v, want 409 with the id %s", got, file.ID)
	}
	a.must(t, &again, "service_upload_from_url", m{"url": made.UploadURL})
	if again != file || a.media(t) != 1 {
		t.Errorf("got %+v and %d files, want only %+v", again, a.media(t), file)
	}
	answer, err := call.Do(t.Context(), browserless(), http.MethodGet, file.Path, nil)
	if err != nil || answer.Status != http.StatusOK {
		t.Errorf("the file: got %v and %v, want 200", answer, err)
	}
}

// wantEnded fails the test unless both processes refuse an upload address within a second. The
// requests that it sends do not use up the address.
func wantEnded(t testing.TB, base, second string, made uploadAddress, statuses ...int) {
	t.Helper()
	for _, process := range []string{base, second} {
		address := strings.Replace(made.UploadURL, base, process, 1)
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			got := put(t, address, []byte("no picture"))
			if slices.Contains(statuses, got.Status) {
				break
			}
			if got.Status != http.StatusBadRequest || time.Since(began) > time.Second {
				t.Fatalf("%s: got %v, want one of %v within a second", process, got, statuses)
			}
		}
		wantRefusal(t, "a file to "+process, put(t, address, pixel), statuses...)
	}
}

// cutUpload sends a part of a file and closes the connection.
func cutUpload(t testing.TB, host, path string, file []byte) {
	t.Helper()
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(file)+10, file)
	if err == nil {
		err = c.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err == nil && !strings.Contains(string(answer), " 400 ") {
		t.Errorf("a cut upload: got %q, want 400", answer)
	}
}
