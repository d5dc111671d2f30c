package bounds

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
)

// TestEveryRoute_EndsSlowSenders sends the headers and the first byte of a body, with and without
// valid credentials, and then stops. The service must close the connection after REQUEST_TIMEOUT,
// or for an upload when its rate is too low.
func TestEveryRoute_EndsSlowSenders(t *testing.T) {
	t.Parallel()
	r := start(t)
	var all sync.WaitGroup
	for _, route := range edge.Routes() {
		if route.Method == http.MethodGet {
			continue
		}
		for name, head := range map[string]string{
			"no credential": "",
			"a known user":  fmt.Sprintf("Authorization: %s\r\nauth: %s\r\n", r.key, r.session),
		} {
			all.Go(func() {
				if err := r.slow(route, head); err != nil {
					t.Errorf("%s from %s: %v", route, name, err)
				}
			})
		}
	}
	all.Wait()
}

// slow starts a request, sends nothing more, and waits until the service closes the connection.
func (r *rig) slow(route edge.Route, head string) error {
	kind := "application/json"
	if strings.HasSuffix(route.Path, "/upload") {
		kind = "multipart/form-data; boundary=b"
	}
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		return err
	}
	defer c.Close()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: crier.test\r\n%sContent-Type: %s\r\nContent-Length: 900000\r\n\r\n{", route.Method, filled(route.Path), head, kind)
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	// The deadline reveals a service that still waits.
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for {
		if _, err := in.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the service still waits")
		} else if err != nil {
			return nil
		}
	}
}
