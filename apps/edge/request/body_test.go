package request_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestRequestsHiddenInBodiesNeverRun(t *testing.T) {
	t.Parallel()
	auth := "Authorization: " + edgetest.APIKey + "\r\n"
	form := "Content-Type: multipart/form-data; boundary=b\r\n"
	big := strings.Repeat(" ", 2<<20)
	// The server reads this much of a body with the headers. A careless server would run what
	// follows as a request.
	first := strings.Repeat("x", 8<<10)
	for name, c := range map[string]struct {
		head, body string
		refuse     bool
		status     string
	}{
		"upload without key":       {head: "POST /public/v1/upload HTTP/1.1\r\n" + form, body: first + edgetest.HiddenRequest, refuse: false, status: " 401 "},
		"large upload without key": {head: "POST /public/v1/upload HTTP/1.1\r\n" + form, body: big + edgetest.HiddenRequest, refuse: false, status: ""},
		"upload refused by limit":  {head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + form, body: first + edgetest.HiddenRequest, refuse: true, status: " 429 "},
		"upload of another type":   {head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + "Content-Type: text/plain\r\n", body: first + edgetest.HiddenRequest, refuse: false, status: " 400 "},
		"upload that is malformed": {head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + form, body: "--b\r\n\r\n" + first[6:] + edgetest.HiddenRequest, refuse: false, status: " 400 "},
		"upload that is too large": {
			head: "POST /public/v1/upload HTTP/1.1\r\n" + auth + form,
			body: "--b\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\n" + strings.Repeat("x", 300<<10) + edgetest.HiddenRequest, refuse: false, status: "",
		},
		"upload to no address":           {head: "PUT /upload/x HTTP/1.1\r\n", body: first + edgetest.HiddenRequest, status: " 404 "},
		"upload to an address by limit":  {head: "PUT /upload/cru_token HTTP/1.1\r\n", body: first + edgetest.HiddenRequest, refuse: true, status: " 429 "},
		"upload to an address":           {head: "PUT /upload/cru_token HTTP/1.1\r\n", body: first + edgetest.HiddenRequest, status: " 201 "},
		"large upload to an address":     {head: "PUT /upload/cru_token HTTP/1.1\r\n", body: big + edgetest.HiddenRequest, status: ""},
		"form to an address, too little": {head: "POST /upload/cru_token HTTP/1.1\r\n" + form, body: first + edgetest.HiddenRequest, status: " 400 "},
		"JSON that is too long":          {head: "PUT /public/v1/posts/p/status HTTP/1.1\r\n" + auth, body: big + edgetest.HiddenRequest, refuse: false, status: ""},
		"JSON without key":               {head: "POST /public/v1/posts HTTP/1.1\r\n", body: first + edgetest.HiddenRequest, refuse: false, status: " 401 "},
		"a GET with a body":              {head: "GET /public/v1/is-connected HTTP/1.1\r\n" + auth, body: first + edgetest.HiddenRequest, refuse: false, status: " 200 "},
		"a DELETE with a body":           {head: "DELETE /public/v1/posts/other HTTP/1.1\r\n" + auth, body: first + edgetest.HiddenRequest, refuse: false, status: " 200 "},
		"no such route":                  {head: "POST /nowhere HTTP/1.1\r\n", body: first + edgetest.HiddenRequest, refuse: false, status: " 404 "},
		"no such method":                 {head: "BREW /public/v1/posts HTTP/1.1\r\n", body: first + edgetest.HiddenRequest, refuse: false, status: " 405 "},
		"a preflight": {
			head: "OPTIONS /public/v1/posts HTTP/1.1\r\nOrigin: http://a\r\nAccess-Control-Request-Method: POST\r\n",
			body: first + edgetest.HiddenRequest, refuse: false, status: " 204 ",
		},
		"a missing route": {head: "POST /stripe HTTP/1.1\r\n", body: first + edgetest.HiddenRequest, refuse: false, status: " 501 "},
	} {
		for _, form := range []string{"with a length", "in chunks"} {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				s := edgetest.New(t, map[string]string{"UPLOAD_BODY_LIMIT": "200000"})
				s.RateLimited.Store(c.refuse)
				framing, body := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(c.body)), c.body
				if form == "in chunks" {
					framing, body = "Transfer-Encoding: chunked\r\n\r\n", edgetest.Chunked(c.body)
				}
				out := s.Raw(t, strings.Replace(c.head, "HTTP/1.1\r\n", "HTTP/1.1\r\nHost: x\r\n", 1)+framing+body)
				if !strings.Contains(out, c.status) {
					t.Errorf("no %q in %q", c.status, out)
				}
				s.Mu.Lock()
				defer s.Mu.Unlock()
				if strings.Contains(strings.Join(s.IDs, " "), "smuggled") {
					t.Errorf("the hidden request ran: %q", out)
				}
			})
		}
	}
}

func TestBody_BrokenChunksCloseConnection(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, path := range []string{"/public/v1/posts", "/public/v1/upload", "/nowhere"} {
		out := s.Raw(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+edgetest.KeyLine+
			"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n0\r\n\r\n"+edgetest.HiddenRequest)
		if n := strings.Count(out, "HTTP/1.1 "); n > 1 {
			t.Errorf("%s: got %d answers, want one: %q", path, n, out)
		}
	}
	if len(s.IDs) != 0 {
		t.Errorf("requests ran: %v, want none", s.IDs)
	}
}

func TestPipelinedRequests_AllRun(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	one := "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: " + edgetest.APIKey + "\r\n"
	withLength := one + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(edgetest.PostBody)) + edgetest.PostBody
	out := s.Raw(t, withLength+withLength+strings.Replace(edgetest.HiddenRequest, "smuggled", "piped", 1)+one+"Transfer-Encoding: chunked\r\n\r\n"+edgetest.Chunked(edgetest.PostBody))
	if strings.Count(out, "HTTP/1.1 201") != 3 || strings.Count(out, "HTTP/1.1 200") != 1 || len(s.Creates) != 3 || len(s.IDs) != 1 {
		t.Errorf("got %d creates and %v, want 3 and one id: %q", len(s.Creates), s.IDs, out)
	}
}

// TestBody_ConnectionClosesAfterChunks: a proxy may see the end of a trailer elsewhere and treat
// the next request as part of it.
func TestBody_ConnectionClosesAfterChunks(t *testing.T) {
	t.Parallel()
	health := "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		head, body string
		status     string
	}{
		"a trailer that ends without CR": {head: "POST /nowhere HTTP/1.1\r\n", body: "0\r\nX: a\n\n", status: "404"},
		"a trailer":                      {head: "POST /nowhere HTTP/1.1\r\n", body: "0\r\nX: a\r\n\r\n", status: "404"},
		"no trailer":                     {head: "POST /nowhere HTTP/1.1\r\n", body: "0\r\n\r\n", status: "404"},
		"a trailer of a body that is read": {
			head: "POST /public/v1/posts HTTP/1.1\r\n" + edgetest.KeyLine,
			body: strings.TrimSuffix(edgetest.Chunked(edgetest.PostBody), "\r\n") + "X: a\n\n", status: "201",
		},
		"a trailer of a GET": {head: "GET /health HTTP/1.1\r\n", body: "0\r\nX: a\n\n", status: "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, nil)
			out := s.Raw(t, strings.Replace(c.head, "HTTP/1.1\r\n", "HTTP/1.1\r\nHost: x\r\n", 1)+"Transfer-Encoding: chunked\r\n\r\n"+c.body+health)
			if !strings.HasPrefix(out, "HTTP/1.1 "+c.status+" ") || strings.Count(out, "HTTP/1.1 ") != 1 || !strings.Contains(out, "\r\nConnection: close\r\n") {
				t.Errorf("want one answer with %s and Connection: close, got %q", c.status, out)
			}
		})
	}
}

func TestBody_IsLimited(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"BODY_LIMIT": "1000", "POST_BODY_LIMIT": "5000", "UPLOAD_BODY_LIMIT": "3000"})
	pad := func(n int) string { return `{"status":"draft","pad":"` + strings.Repeat("x", n) + `"}` }
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p/status", pad(900)), 200)
	edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p/status", pad(1000)), 413, `"statusCode":413`)
	edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", strings.Replace(edgetest.PostBody, `"x"`, `"`+strings.Repeat("x", 3000)+`"`, 1)), 201)
	edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", strings.Replace(edgetest.PostBody, `"x"`, `"`+strings.Repeat("x", 5000)+`"`, 1)), 413)
	for _, length := range []int64{0, -1} {
		body, kind := edgetest.UploadForm(t, "file", "a.png", strings.NewReader(strings.Repeat("x", 4000)))
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/public/v1/upload", io.MultiReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		if length == 0 {
			req.ContentLength = int64(body.Len())
		}
		req.Header.Set("Authorization", edgetest.APIKey)
		req.Header.Set("Content-Type", kind)
		resp, err := s.Client.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("length %d: got %d, want 413", length, resp.StatusCode)
		}
	}
}
