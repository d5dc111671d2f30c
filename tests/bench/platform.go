package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// platform implements only the part of the sandbox's API that publishing needs, and counts the
// posts. The text of a post is "<channel> <number> <due in Unix µs>".
type platform struct {
	address  string
	ln       net.Listener
	free     chan net.Conn // passes connections to idle goroutines
	latency  atomic.Int64
	accepted atomic.Int64 // connections
	resumed  atomic.Int64 // connections that resumed a TLS session
	tlsOptions
	mu   sync.Mutex
	seen *measurement
}

// tlsOptions is the TLS configuration of a platform. The zero value means no TLS.
type tlsOptions struct {
	tls *tls.Config
	// roots is a file with the certificates that the service must trust, or "" for the machine's.
	roots string
	// closing closes each connection after its first response.
	closing bool
}

// measurement is what the platform received during one measurement.
type measurement struct {
	late       []time.Duration
	last       map[string]int           // highest post number of each channel
	ends       map[string]time.Time     // time of that post
	worst      map[string]time.Duration // worst lateness of each channel
	keys       map[string]int           // number of the post that each key created, from 1
	texts      map[string]bool
	posts      []stored
	twice      int
	outOfOrder int
	end        time.Time
}

// stored is a received post.
type stored struct {
	channel, key string
	at           time.Time
}

func listen(ctx context.Context, behind tlsOptions) (*platform, error) {
	cfg := net.ListenConfig{KeepAlive: -1}
	cfg.SetMultipathTCP(false)
	ln, err := cfg.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &platform{address: "http://" + ln.Addr().String(), ln: ln, free: make(chan net.Conn), tlsOptions: behind}
	if behind.tls != nil {
		p.address, p.ln = "https://"+ln.Addr().String(), tls.NewListener(ln, behind.tls)
	}
	p.begin(0)
	go p.accept()
	return p, nil
}

func (p *platform) close() error { return p.ln.Close() }

// begin starts a measurement. From now on, every post takes latency.
func (p *platform) begin(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency.Store(int64(latency))
	p.seen = nothing()
}

func nothing() *measurement {
	return &measurement{last: map[string]int{}, ends: map[string]time.Time{}, worst: map[string]time.Duration{},
		keys: map[string]int{}, texts: map[string]bool{}}
}

func (p *platform) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen.late)
}

// end ends the measurement and returns it.
func (p *platform) end() *measurement {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seen
	p.seen = nothing()
	return s
}

func (p *platform) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		p.accepted.Add(1)
		select {
		case p.free <- c:
		default:
			go p.serve(c)
		}
	}
}

// serve handles connections, one after the other.
func (p *platform) serve(c net.Conn) {
	for {
		p.serveConn(c)
		c = <-p.free
	}
}

// serveConn handles one connection. It does little, because the platform shares the machine with
// the service.
func (p *platform) serveConn(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 2048)
	if secure, ok := c.(*tls.Conn); ok {
		if secure.Handshake() != nil {
			return // the client has disconnected
		}
		if secure.ConnectionState().DidResume {
			p.resumed.Add(1)
		}
	}
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return // the client has disconnected
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		status, out := p.answer(req, body)
		last := ""
		if p.closing {
			last = "Connection: close\r\n"
		}
		_, err = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
			status, http.StatusText(status), last, len(out), out)
		if err != nil || req.Close || p.closing {
			return
		}
	}
}

func (p *platform) answer(req *http.Request, body []byte) (status int, out string) {
	var in struct{ Text, Key, Marker string }
	if req.Method == http.MethodGet && req.URL.Path == "/api/posts" {
		return http.StatusOK, p.list(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "), req.URL.Query())
	}
	if req.Method != http.MethodPost || req.URL.Path != "/api/posts" {
		return http.StatusNotFound, `{"error":{"code":"not_found","message":"only posts are taken here"}}`
	}
	if json.Unmarshal(body, &in) != nil {
		return http.StatusBadRequest, `{"error":{"code":"bad_json","message":"not JSON"}}`
	}
	n, err := p.record(in.Text, in.Key+in.Marker)
	if err != nil {
		return http.StatusUnprocessableEntity, `{"error":{"code":"bad_text","message":"not a text of this benchmark"}}`
	}
	if d := time.Duration(p.latency.Load()); d > 0 {
		time.Sleep(d)
	}
	return http.StatusCreated, fmt.Sprintf(`{"id":"p%d","url":"%s/p/%d","createdAt":"2026-01-01T00:00:00Z"}`, n,
		p.address, n)
}

func (p *platform) record(text, key string) (int, error) {
	channel, rest, _ := strings.Cut(text, " ")
	digits, micros, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return 0, err
	}
	due, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return 0, err
	}
	at := now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seen
	if n := s.keys[key]; n > 0 && key != "" {
		return n, nil // a repeated key returns the first post, as for a grade A account
	}
	switch {
	case s.texts[text]:
		s.twice++
	// An earlier post was overtaken or lost. It is not counted again when it arrives.
	case number > s.last[channel]+1:
		s.outOfOrder++
	}
	s.posts = append(s.posts, stored{channel: channel, key: key, at: at})
	s.keys[key], s.texts[text], s.last[channel], s.ends[channel] = len(s.posts), true, max(number, s.last[channel]), at
	late := at.Sub(time.UnixMicro(due))
	s.end, s.worst[channel] = at, max(late, s.worst[channel])
	s.late = append(s.late, late)
	return len(s.late), nil
}

// list returns a page of the posts of a channel's account since a given time, newest first.
func (p *platform) list(channel string, query url.Values) string {
	since, err := time.Parse(time.RFC3339Nano, query.Get("since"))
	if err != nil {
		since = time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	end := len(p.seen.posts)
	if n, err := strconv.Atoi(strings.TrimPrefix(query.Get("before"), "p")); err == nil {
		end = min(end, n-1)
	}
	var out []string
	for i := end - 1; i >= 0 && len(out) < 100 && !p.seen.posts[i].at.Before(since); i-- {
		if x := p.seen.posts[i]; x.channel == channel {
			out = append(out, fmt.Sprintf(`{"id":"p%d","url":"%s/p/%d","createdAt":%q,"key":%q,"text":""}`, i+1,
				p.address, i+1, x.at.Format(time.RFC3339Nano), x.key))
		}
	}
	return `{"posts":[` + strings.Join(out, ",") + `]}`
}
