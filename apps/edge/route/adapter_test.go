package route

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
)

// serve mounts the table as the edge does and returns its address. Every request has a record whose
// id comes from the X-Id header.
func serve(t *testing.T, table *Table, before ...fiber.Handler) string {
	t.Helper()
	app := fiber.New(fiber.Config{
		Immutable: true, DisableStartupMessage: true, StreamRequestBody: true, DisablePreParseMultipartForm: true,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	})
	app.Use(func(c *fiber.Ctx) error {
		request.Start(c.Context()).ID = c.Get("X-Id")
		c.SetUserContext(context.WithValue(c.UserContext(), userKey{}, c.Get("X-Id")+" of the user context"))
		return c.Next()
	})
	for _, handler := range before {
		app.Use(handler)
	}
	table.Mount(app)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(&deadlines{Listener: inner}) }()
	t.Cleanup(func() {
		if err := app.ShutdownWithTimeout(10 * time.Second); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + inner.Addr().String()
}

// add adds an operation to the table.
func add[I, O any](table *Table, method, path string, fn func(context.Context, *I) (*O, error)) {
	table.Add(Line{Method: method, Path: path, Operation: "operation", Endpoint: JSON(huma.Operation{}, fn)})
}

type userKey struct{}

// deadlines is a listener whose connections count how often their read deadline is removed.
type deadlines struct{ net.Listener }

func (l *deadlines) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &counted{Conn: c}, nil
}

type counted struct {
	net.Conn
	removed atomic.Int64
}

func (c *counted) SetReadDeadline(at time.Time) error {
	if at.IsZero() {
		c.removed.Add(1)
	}
	return c.Conn.SetReadDeadline(at)
}

// call sends a request and returns the response and its body.
func call(t *testing.T, method, address, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Add(pair[0], pair[1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(got)
}

type noteInput struct {
	Place  string `path:"place"`
	Colour string `query:"colour"`
	Client string `header:"X-Client"`
	Cookie string `cookie:"auth"`
	Body   struct {
		Words string `json:"words" minLength:"2"`
	}
}

type noteOutput struct {
	Status  int
	Cookies []string `header:"Set-Cookie"`
	Body    map[string]string
}

func TestAdapter_HandlerGetsRequestAndAnswers(t *testing.T) {
	t.Parallel()
	table := New("1", "")
	add(table, "POST", "/notes/{place}", func(_ context.Context, in *noteInput) (*noteOutput, error) {
		return &noteOutput{Status: 202, Cookies: []string{"a=1", "b=2"}, Body: map[string]string{
			"place": in.Place, "colour": in.Colour, "client": in.Client, "cookie": in.Cookie, "words": in.Body.Words,
		}}, nil
	})
	base := serve(t, table)
	res, body := call(t, "POST", base+"/notes/home?colour=r%C3%B6d", `{"words":"so it is"}`,
		"X-Client", "cli", "Cookie", "x=y; auth=secret", "Content-Type", "application/json")
	want := `{"client":"cli","colour":"röd","cookie":"secret","place":"home","words":"so it is"}` + "\n"
	if res.StatusCode != 202 || body != want {
		t.Errorf("answered %d %s, want 202 %s", res.StatusCode, body, want)
	}
	if got := res.Header.Values("Set-Cookie"); !slices.Equal(got, []string{"a=1", "b=2"}) {
		t.Errorf("Set-Cookie %q, want two lines", got)
	}
	if got := res.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q, want application/json", got)
	}
	if res, body := call(t, "POST", base+"/notes/home", `{"words":"x"}`); res.StatusCode != 400 || !strings.Contains(body, "words") {
		t.Errorf("a body that is too short is answered %d %s, want 400 that names words", res.StatusCode, body)
	}
	if res, body := call(t, "POST", base+"/notes/home", ""); res.StatusCode != 400 {
		t.Errorf("no body is answered %d %s, want 400", res.StatusCode, body)
	}
}

func TestAdapter_ContextKeepsValuesOfItsRequest(t *testing.T) {
	t.Parallel()
	table := New("1", "")
	kept := make(chan context.Context, 2)
	add(table, "GET", "/keep", func(ctx context.Context, _ *struct{}) (*struct{}, error) {
		kept <- ctx
		return nil, nil
	})
	base := serve(t, table)
	for _, id := range []string{"first", "second"} {
		if res, _ := call(t, "GET", base+"/keep", "", "X-Id", id); res.StatusCode != 204 {
			t.Fatalf("answered %d, want 204", res.StatusCode)
		}
	}
	for _, id := range []string{"first", "second"} {
		ctx := <-kept
		if got := request.From(ctx).ID; got != id {
			t.Errorf("the record of the request has the id %q, want %q", got, id)
		}
		if got, want := ctx.Value(userKey{}), id+" of the user context"; got != want {
			t.Errorf("the user context has the value %v, want %q", got, want)
		}
	}
}

// TestAdapter_KeepsDeadlinesOfConnection: huma would remove the read deadline if the operation has
// none for the body.
func TestAdapter_KeepsDeadlinesOfConnection(t *testing.T) {
	t.Parallel()
	table := New("1", "")
	add(table, "POST", "/notes/{place}", func(context.Context, *noteInput) (*struct{}, error) {
		return nil, nil
	})
	removed := make(chan int64, 1)
	base := serve(t, table, func(c *fiber.Ctx) error {
		conn := c.Context().Conn().(*counted)
		before := conn.removed.Load()
		err := c.Next()
		removed <- conn.removed.Load() - before
		return err
	})
	if res, body := call(t, "POST", base+"/notes/home", `{"words":"so it is"}`); res.StatusCode != 204 {
		t.Fatalf("answered %d %s, want 204", res.StatusCode, body)
	}
	if n := <-removed; n != 0 {
		t.Errorf("the read deadline was removed %d times, want 0", n)
	}
}

func TestAdapter_ContextDescribesRequest(t *testing.T) {
	t.Parallel()
	table := New("1", "")
	op := &huma.Operation{Method: "POST", Path: "/raw/{name}"}
	seen := make(chan map[string]string, 1)
	table.API().Adapter().Handle(op, func(ctx huma.Context) {
		form, err := ctx.GetMultipartForm()
		if err != nil {
			t.Error(err)
			return
		}
		u := ctx.URL()
		host, _, err := net.SplitHostPort(ctx.RemoteAddr())
		if err != nil {
			t.Error(err)
		}
		ctx.SetStatus(203)
		seen <- map[string]string{
			"method": ctx.Method(), "host": ctx.Host(), "remote": host, "protocol": ctx.Version().Proto,
			"path": u.Path, "query": u.RawQuery, "name": ctx.Param("name"),
			"field": strings.Join(form.Value["field"], ","), "operation": ctx.Operation().Path,
			"status": http.StatusText(ctx.Status()),
		}
		if ctx.TLS() != nil {
			t.Error("a connection without TLS has a state of TLS")
		}
	})
	base := serve(t, table)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField("field", "value"); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	res, answer := call(t, "POST", base+"/raw/it?a=b%20c", body.String(), "Content-Type", form.FormDataContentType())
	if res.StatusCode != 203 {
		t.Fatalf("answered %d %s, want 203", res.StatusCode, answer)
	}
	got := <-seen
	for name, want := range map[string]string{
		"method": "POST", "host": strings.TrimPrefix(base, "http://"), "remote": "127.0.0.1", "protocol": "HTTP/1.1",
		"path": "/raw/it", "query": "a=b%20c", "name": "it", "field": "value", "operation": "/raw/{name}",
		"status": "Non-Authoritative Information",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestAdapter_Answers501(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	New("1", "").API().Adapter().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if answer.Code != http.StatusNotImplemented {
		t.Errorf("answered %d, want 501", answer.Code)
	}
}
