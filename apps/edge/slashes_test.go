package edge

import (
	"testing"

	"github.com/valyala/fasthttp"
)

func TestJoinSlashes_OnlyInThePath(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/public/v1/posts":                      "/public/v1/posts",
		"//public/v1/posts":                     "/public/v1/posts",
		"/public/v1////posts//x1/":              "/public/v1/posts/x1/",
		"///":                                   "/",
		"//public//stream?url=https://a//b.mp4": "/public/stream?url=https://a//b.mp4",
		"/public/stream?url=https://a//b.mp4":   "/public/stream?url=https://a//b.mp4",
		"/posts#//":                             "/posts#//",
		"//public/v1%2F%2Fposts":                "/public/v1%2F%2Fposts",
		"/public/v1/uploads//..//posts":         "/public/v1/uploads/../posts",
		"/public/v1/%2e%2e//posts":              "/public/v1/%2e%2e/posts",
		"/./public":                             "/./public",
		"http://crier.test//public//v1?a=//":    "http://crier.test/public/v1?a=//",
		"http://crier.test":                     "http://crier.test",
		"http://crier.test?a=b//c":              "http://crier.test?a=b//c",
		"//crier.test:80//public/v1/posts":      "/crier.test:80/public/v1/posts",
		"/files/https://a//b":                   "/files/https:/a/b",
		"*":                                     "*",
		"":                                      "/",
	} {
		var req fasthttp.Request
		req.Header.SetRequestURI(target)
		req.Header.SetHost("host.test")
		joinSlashes(&req)
		if got := string(req.Header.RequestURI()); got != want {
			t.Errorf("%q became %q, want %q", target, got, want)
		}
	}
}
