package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/tests/s3test"
)

func TestS3_SendsLargeFilesInParts(t *testing.T) {
	t.Parallel()
	s := newS3(t)
	body := make([]byte, 70<<20)
	random := rand.NewChaCha8([32]byte{1})
	if _, err := io.ReadFull(random, body); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "large", bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, s, "large")
	if err != nil || got != string(body) {
		t.Fatalf("read %d bytes with error %v, want the %d that were written", len(got), err, len(body))
	}
}

func TestS3_WrongKeysAreRefused(t *testing.T) {
	t.Parallel()
	cfg := s3test.Config(s3test.Start(t))
	if err := s3At(t, cfg).Verify(t.Context()); err != nil {
		t.Fatalf("the right configuration: %v", err)
	}
	for name, change := range map[string]func(*blob.S3Config){
		"secret key": func(c *blob.S3Config) { c.SecretKey = "other" },
		"access key": func(c *blob.S3Config) { c.AccessKey = "other" },
		"region":     func(c *blob.S3Config) { c.Region = "other" },
		"bucket":     func(c *blob.S3Config) { c.Bucket = "other" },
	} {
		wrong := cfg
		change(&wrong)
		s := s3At(t, wrong)
		if err := s.Verify(t.Context()); !errors.Is(err, blob.ErrRefused) {
			t.Errorf("another %s: Verify returns %v, want ErrRefused", name, err)
		}
		if err := s.Check(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("another %s: Check returns %v, want Unavailable", name, err)
		}
	}
}

func TestS3_UnreachableServiceIsUnavailable(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	s := s3At(t, s3test.Config("http://"+ln.Addr().String()))
	if err := s.Verify(t.Context()); !fault.Is(err, fault.Unavailable) || errors.Is(err, blob.ErrRefused) {
		t.Errorf("Verify returns %v, want Unavailable", err)
	}
	if _, err := s.Open(t.Context(), "k"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Open returns %v, want Unavailable", err)
	}
}

// TestS3_ReadContinuesAfterBrokenResponse cuts off every large response.
func TestS3_ReadContinuesAfterBrokenResponse(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(s3test.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	const cut = 100_000
	var gets atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method == http.MethodGet && r.ContentLength > cut {
				gets.Add(1)
				r.Body = readCloser{Reader: io.LimitReader(r.Body, cut), Closer: r.Body}
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }() // the proxy panics when it must abort
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s := s3At(t, s3test.Config(server.URL))
	body := strings.Repeat("0123456789", 45_000)
	write(t, s, "k", body)
	if got, err := read(t, s, "k"); err != nil || got != body {
		t.Fatalf("read %d bytes with error %v, want %d", len(got), err, len(body))
	}
	if gets.Load() == 0 {
		t.Fatal("no answer was broken off")
	}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// TestS3_CompletionWithoutResponseIsStored loses the response to the completion of a multipart
// upload.
func TestS3_CompletionWithoutResponseIsStored(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(s3test.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	var lost atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method == http.MethodPost && r.Request.URL.Query().Has("uploadId") && lost.Add(1) == 1 {
				r.StatusCode = http.StatusServiceUnavailable // the minio client retries this
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	s := s3At(t, s3test.Config(server.URL))
	body := bytes.Repeat([]byte("0123456789"), 7<<20)
	if _, err := s.Create(t.Context(), "large", bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, s, "large"); err != nil || got != string(body) || lost.Load() < 2 {
		t.Fatalf("read %d bytes with error %v after %d completions, want %d bytes", len(got), err, lost.Load(), len(body))
	}
}

func TestS3_ReplacedFileIsNotMixed(t *testing.T) {
	t.Parallel()
	s := newS3(t)
	write(t, s, "k", strings.Repeat("a", 100))
	f, err := s.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, s, "k", strings.Repeat("b", 100))
	if got, err := io.ReadAll(f); err == nil && strings.Contains(string(got), "b") {
		t.Fatalf("read %q of a file that was replaced, want its old content or an error", got)
	}
}

func TestS3_LeavesNothingOnTheDisk(t *testing.T) {
	t.Parallel()
	spool := filepath.Join(t.TempDir(), "spool")
	if err := errors.Join(os.Mkdir(spool, 0o700), os.WriteFile(filepath.Join(spool, "old"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := blob.NewS3(s3test.Config(s3test.Start(t)), &http.Transport{DisableKeepAlives: true}, spool)
	if err != nil {
		t.Fatal(err)
	}
	r := io.MultiReader(strings.NewReader("x"), readerFunc(func([]byte) (int, error) {
		left, err := os.ReadDir(spool)
		if err != nil || len(left) > 0 {
			t.Errorf("while a file is uploaded the folder has %v with error %v, want nothing", left, err)
		}
		return 0, io.EOF
	}))
	if _, err := s.Create(t.Context(), "k", r); err != nil {
		t.Fatal(err)
	}
}

func TestS3_CleanAbortsOldUploadsInParts(t *testing.T) {
	t.Parallel()
	cfg := s3test.Config(s3test.Start(t))
	s := s3At(t, cfg)
	client, err := minio.NewCore(strings.TrimPrefix(cfg.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, ""), Region: cfg.Region, BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.NewMultipartUpload(t.Context(), cfg.Bucket, "org/key", minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	left := func() (n int) {
		t.Helper()
		for u := range client.ListIncompleteUploads(t.Context(), cfg.Bucket, "", true) {
			if u.Err != nil {
				t.Fatal(u.Err)
			}
			n++
		}
		return n
	}
	if err := s.Clean(t.Context(), time.Now().Add(-time.Hour)); err != nil || left() != 1 {
		t.Fatalf("cleaning what is older: %v, and %d uploads are left, want the new one", err, left())
	}
	if err := s.Clean(t.Context(), time.Now().Add(time.Hour)); err != nil || left() != 0 {
		t.Fatalf("cleaning everything: %v, and %d uploads are left, want none", err, left())
	}
}

// A service that accepts requests but never responds must not block a caller who lists its files.
func TestS3_ListsEndWhenTheServiceHangs(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(ctx context.Context, s *blob.S3) error{
		"List": func(ctx context.Context, s *blob.S3) error {
			return s.List(ctx, func([]blob.Entry) error { return nil })
		},
		"Clean": func(ctx context.Context, s *blob.S3) error { return s.Clean(ctx, time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				s, err := blob.NewS3(s3test.Config("http://127.0.0.1:1"), hangs{}, filepath.Join(t.TempDir(), "spool"))
				if err != nil {
					t.Fatal(err)
				}
				if err := list(ctx, s); !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
					t.Errorf("got %v, want Unavailable before the caller gives up", err)
				}
			})
		})
	}
}

// hangs is a service that never responds.
type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	good := s3test.Config("https://s3.example.com")
	for name, v := range map[string]struct {
		change func(*blob.Config)
		want   string
	}{
		"complete":              {change: func(*blob.Config) {}},
		"disk needs nothing":    {change: func(c *blob.Config) { *c = blob.Config{Kind: blob.KindDisk} }},
		"an unknown kind":       {change: func(c *blob.Config) { c.Kind = "ftp" }, want: "FILES"},
		"no endpoint":           {change: func(c *blob.Config) { c.S3.Endpoint = "" }, want: "S3_ENDPOINT"},
		"a path":                {change: func(c *blob.Config) { c.S3.Endpoint = "https://s3.example.com/x" }, want: "S3_ENDPOINT"},
		"another scheme":        {change: func(c *blob.Config) { c.S3.Endpoint = "s3://uploads" }, want: "S3_ENDPOINT"},
		"a host for an address": {change: func(c *blob.Config) { c.S3.Endpoint, c.S3.PathStyle = "http://10.0.0.1:9000", false }, want: "S3_PATH_STYLE"},
		"no bucket":             {change: func(c *blob.Config) { c.S3.Bucket = "" }, want: "S3_BUCKET"},
		"no region":             {change: func(c *blob.Config) { c.S3.Region = "" }, want: "S3_REGION"},
		"no access key":         {change: func(c *blob.Config) { c.S3.AccessKey = "" }, want: "S3_ACCESS_KEY"},
		"no secret key":         {change: func(c *blob.Config) { c.S3.SecretKey = "" }, want: "S3_SECRET_KEY"},
	} {
		c := blob.Config{Kind: blob.KindS3, S3: good}
		v.change(&c)
		err := c.Validate()
		if v.want == "" && err != nil || v.want != "" && (err == nil || !strings.HasPrefix(err.Error(), v.want+":")) {
			t.Errorf("%s: %v, want an error of %q", name, err, v.want)
		}
		if err != nil && strings.Contains(err.Error(), good.SecretKey) {
			t.Errorf("%s: the error %v has the secret key", name, err)
		}
	}
}
