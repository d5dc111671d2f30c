//go:build !race

package bounds

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/publishing"
)

// channel connects an account of the sandbox and returns the channel's id.
func (r *rig) channel(t *testing.T) string {
	t.Helper()
	state, err := r.app.Channels.Begin(t.Context(), r.owner, publishing.BeginConnect{Connector: "sandbox"})
	if err != nil {
		t.Fatal(err)
	}
	connected, err := r.app.Channels.Finish(t.Context(), publishing.FinishConnect{
		Connector: "sandbox", State: state,
		Fields: map[string]string{"service": r.sandbox, "name": "account", "password": password, "grade": "A"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return connected.Channel.ID.String()
}

// TestLargestLists_TakeLittleMemory lists ten drafts of the largest size, four times in parallel.
// Their text grows when it is returned as HTML. The test is not parallel because it measures the
// memory of the whole process.
func TestLargestLists_TakeLittleMemory(t *testing.T) {
	const growth = 256 << 20 // up to 190 MB measured, including objects not collected yet
	r := start(t)
	part := `{"content":"x` + strings.Repeat(`\n`, 99_000) + `"}`
	draft := fmt.Sprintf(`{"type":"draft","date":"2030-01-01","posts":[{"integration":{"id":%q},"value":[%s%s]}]}`, r.channel(t), strings.Repeat(part+",", 9), part)
	for range 10 {
		if a := r.do(t, edge.Route{Method: http.MethodPost, Path: "/public/v1/posts"}, draft); a.Status != http.StatusCreated {
			t.Fatalf("the draft is answered with %d", a.Status)
		}
	}
	for _, query := range []string{
		"startDate=2029-12-31&endDate=2030-01-02", "page=0&limit=10", "page=0&limit=8", "page=0&limit=8&format=html", "page=0&limit=3&format=html", "page=0&limit=8&format=text",
	} {
		t.Run(query, func(t *testing.T) {
			debug.FreeOSMemory()
			var answers [4]string
			before := heap()
			peak := peakOf(func() {
				var all sync.WaitGroup
				for i := range answers {
					all.Go(func() { answers[i] = r.list(t, query) })
				}
				all.Wait()
			})
			t.Logf("the heap grows from %d to %d MB; the lists are answered with %v", before>>20, peak>>20, answers)
			if peak > before+growth {
				t.Errorf("four lists at once take %d MB", (peak-before)>>20)
			}
		})
	}
}

// list requests a list, discards the body, and returns the status and the size of the response.
func (r *rig) list(t *testing.T, query string) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/public/v1/posts?"+query, nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", r.key)
	resp, err := r.http.Do(req)
	if err != nil {
		t.Error(err)
		return err.Error()
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a list is answered with %d, %v", resp.StatusCode, err)
	}
	return fmt.Sprintf("%d (%d KB)", resp.StatusCode, n>>10)
}

// heap returns the memory of objects in bytes, including dead ones that are not swept yet.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peakOf returns the largest heap seen while do ran, in bytes.
func peakOf(do func()) (peak uint64) {
	done, seen := make(chan struct{}), make(chan uint64)
	go func() {
		most := heap()
		for {
			select {
			case <-done:
				seen <- max(most, heap())
				return
			case <-time.After(time.Millisecond):
				most = max(most, heap())
			}
		}
	}()
	do()
	close(done)
	return <-seen
}
