//go:build !race && linux

package bounds

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"crier/tests/call"
	"crier/tests/fixture"
	"crier/tests/s3test"
)

// s3Folder is the variable that makes this program an S3 server instead of a test.
const s3Folder = "CRIER_BOUNDS_S3"

func TestMain(m *testing.M) {
	if dir := os.Getenv(s3Folder); dir != "" {
		fmt.Fprintln(os.Stderr, serveS3(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveS3 prints the address and serves until the process is killed.
func serveS3(dir string) error {
	handler, err := s3test.Handler(dir)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + ln.Addr().String())
	return http.Serve(ln, handler)
}

// startS3 runs an S3 server in another process, whose memory does not count, and returns its URL.
func startS3(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), s3Folder+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // the error says that it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the S3 server does not start: %v", err)
	}
	return strings.TrimSpace(line)
}

const (
	// growth is how much an upload may add to the memory of the process, in bytes.
	growth = 64 << 20
)

// videoHead is the beginning of an MP4 video. The rest of the video is one box that extends to the
// end of the file.
var videoHead = string(fixture.FilmHead()) + "\x00\x00\x00\x00mdat"

// video returns a video of size bytes, the last of which is n.
func video(size int64, n byte) io.Reader {
	return io.MultiReader(strings.NewReader(videoHead), io.LimitReader(zeros{}, size-int64(len(videoHead))-1), strings.NewReader(string(n)))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// resident returns the resident memory of the process, in bytes.
func resident(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if err != nil || len(fields) == 0 {
		t.Errorf("the memory of the process cannot be read: %v", err)
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n << 10
}

// peak returns the most by which the resident memory of the process grew while do ran, in bytes.
func peak(t *testing.T, do func()) int64 {
	t.Helper()
	debug.FreeOSMemory()
	before, most := resident(t), int64(0)
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, resident(t))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	do()
	close(done)
	<-sampled
	return most - before
}

// TestPeak_SeesMemory checks that the measurement can fail.
func TestPeak_SeesMemory(t *testing.T) {
	grew := peak(t, func() {
		b := make([]byte, 2*growth)
		for i := range b {
			b[i] = 1
		}
		runtime.KeepAlive(b)
	})
	if grew < growth {
		t.Errorf("the memory grows by %d bytes with %d more in use", grew, 2*growth)
	}
}

// TestUpload_VideoTakesLittleMemory is not parallel because it measures the memory of the whole
// process.
func TestUpload_VideoTakesLittleMemory(t *testing.T) {
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(videoSize))
		_, _ = io.Copy(w, video(videoSize, q.URL.Query().Get("n")[0]))
	}))
	t.Cleanup(source.Close)
	settings := map[string]string{
		"UPLOAD_TIMEOUT": "1h", "REQUEST_TIMEOUT": "1m", "OUTBOUND_ALLOW": source.Listener.Addr().String(),
	}
	inBucket := maps.Clone(settings)
	maps.Copy(inBucket, s3test.Env(startS3(t)))
	n := byte('a') // makes every video different
	for store, with := range map[string]map[string]string{"disk": settings, "s3": inBucket} {
		r := start(t, with)
		for way, upload := range map[string]func(n byte) call.Answer{
			"by file":       func(n byte) call.Answer { return r.sendVideo(t, n) },
			"to an address": func(n byte) call.Answer { return r.sendToAddress(t, n) },
			"by URL": func(n byte) call.Answer {
				return r.slowly(t, "/public/v1/upload-from-url", "application/json", strings.NewReader(fmt.Sprintf(`{"url":"%s/a.mp4?n=%c"}`, source.URL, n)))
			},
		} {
			n++
			grew := peak(t, func() {
				if got := upload(n); got.Status != http.StatusCreated {
					t.Errorf("%s, %s: %v, want 201", store, way, got)
				}
			})
			t.Logf("%s, %s: %d MB take %.1f MB of memory", store, way, videoSize>>20, float64(grew)/(1<<20))
			if grew > growth {
				t.Errorf("%s, %s: the memory grows by %d bytes, want %d at most", store, way, grew, growth)
			}
		}
	}
}

// sendVideo uploads a video as a form.
func (r *rig) sendVideo(t *testing.T, n byte) call.Answer {
	t.Helper()
	const boundary = "boundary-of-the-test"
	head := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp4\"\r\nContent-Type: video/mp4\r\n\r\n"
	body := io.MultiReader(strings.NewReader(head), video(videoSize, n), strings.NewReader("\r\n--"+boundary+"--\r\n"))
	return r.slowly(t, "/public/v1/upload", "multipart/form-data; boundary="+boundary, body)
}

// sendToAddress uploads a video as the body of a request to an upload address.
func (r *rig) sendToAddress(t *testing.T, n byte) call.Answer {
	t.Helper()
	ask := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_upload_from_url","arguments":{}}}`
	a, err := call.Do(t.Context(), r.http, http.MethodPost, base+"/mcp", ask, "Authorization", "Bearer "+r.key)
	if err != nil {
		t.Fatal(err)
	}
	address := gjson.Get(a.Body, "result.structuredContent.output.uploadUrl").String()
	return r.slowly(t, strings.TrimPrefix(address, base), "", video(videoSize, n))
}

// slowly sends a request that may take minutes.
func (r *rig) slowly(t *testing.T, path, contentType string, body io.Reader) call.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", r.key)
	req.Header.Set("Content-Type", contentType)
	resp, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return call.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
}
