// Package s3test runs an S3 server for tests. It is gofakes3 with its objects on disk, behind a
// check of every signature (AWS Signature Version 4), which gofakes3 does not do itself.
package s3test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3afero"

	"crier/platform/blob"
)

// The region, the bucket and the keys that the server accepts.
const (
	Region    = "eu-test-1"
	Bucket    = "uploads"
	AccessKey = "AKIDTEST"
	SecretKey = "secret/of+the tests"
)

// Config returns the configuration of a store on the server.
func Config(url string) blob.S3Config {
	return blob.S3Config{
		Endpoint: url, Region: Region, Bucket: Bucket, AccessKey: AccessKey, SecretKey: SecretKey, PathStyle: true,
	}
}

// Env returns the same configuration as environment variables.
func Env(url string) map[string]string {
	return map[string]string{
		"FILES": "s3", "S3_ENDPOINT": url, "S3_REGION": Region, "S3_BUCKET": Bucket,
		"S3_ACCESS_KEY": AccessKey, "S3_SECRET_KEY": SecretKey,
	}
}

// Handler returns a server with its objects in a folder and an empty bucket. It keeps the parts of
// a multipart upload in memory until the upload is complete. A request with a wrong signature gets
// 403 and changes nothing.
func Handler(dir string) (http.Handler, error) {
	files, err := s3afero.FsPath(dir, s3afero.FsPathCreateAll)
	if err != nil {
		return nil, err
	}
	backend, err := s3afero.MultiBucket(files)
	if err != nil {
		return nil, err
	}
	if err := backend.CreateBucket(Bucket); err != nil {
		return nil, err
	}
	return checkSignatures(gofakes3.New(backend).Server()), nil
}

// Start runs a server on loopback until the test ends, and returns its URL.
func Start(t testing.TB) string {
	t.Helper()
	handler, err := Handler(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), server.Close()); err != nil {
			t.Errorf("the S3 server: %v", err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the S3 server: %v", err)
		}
	})
	return "http://" + ln.Addr().String()
}
