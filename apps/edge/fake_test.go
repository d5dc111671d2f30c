package edge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/actors/org"
	"crier/apps/edge"
	tagapi "crier/apps/edge/api/tag"
	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
	"crier/tests/edgetest"
	"crier/tests/syncbuffer"
)

const (
	goodKey     = "crier_0123456789012345678901234567890123456789"
	goodSession = "session-token"
	baseURL     = "http://crier.test"
)

// world implements every port and records the calls.
type world struct {
	mu       sync.Mutex
	creates  []publishing.CreatePosts
	lists    []publishing.ListPosts
	ids      []string
	customer string
	begun    publishing.BeginConnect

	disconnected string
	finished     publishing.FinishConnect
	orgs         []string
	uploaded     int64

	signIn tenancy.SignIn // the result of sign-ins that succeed
	calls  []string       // of accounts, see record
	from   tenancy.Source // of the last call that has one
	// creator has created all organizations. org, if set, is the organization of all credentials.
	creator tenancy.PersonID
	org     tenancy.OrgID

	err       error // returned by every call if it is set
	result    publishing.CreateResult
	thread    publishing.Thread
	began     atomic.Bool   // an upload has reached its port
	entering  chan string   // gets the address of each log-in that waits for release
	release   chan struct{} // creating and pausing wait for it, when there is one
	computing atomic.Int64  // creations begun
	refused   atomic.Bool
	// authenticated counts the credentials that were checked. skew is added to the clock, in nanoseconds.
	authenticated atomic.Int64
	skew          atomic.Int64
	revoked       atomic.Bool // all credentials
	removed       atomic.Bool // the person, from the organization
	sick          atomic.Bool
	private       atomic.Bool // it takes no registrations
	panics        atomic.Bool
	file          []byte
	closed        atomic.Bool // a file that was opened
	admitted      atomic.Int64
}

// sql fails like a database on text that it cannot store.
func sql(texts ...string) error {
	for _, s := range texts {
		if !publishing.Storable(s) {
			return errors.New("invalid byte sequence for encoding UTF8")
		}
	}
	return nil
}

// held checks the texts of a command that reach the database before the rules of publishing are checked.
func held(cmd publishing.CreatePosts) error {
	texts := []string{cmd.IdempotencyKey, string(cmd.Type)}
	for _, e := range cmd.Entries {
		texts = append(texts, e.Channel, e.Group)
		for _, v := range e.Parts {
			texts = append(texts, v.ID, v.Content)
			for _, m := range v.Media {
				texts = append(texts, m.ID, m.URL, m.Alt)
			}
		}
	}
	return sql(texts...)
}

func (w *world) note(ids ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids = append(w.ids, ids...)
	return w.err
}

// tags are those of an organization without any. The tests call only what needs no body.
type tags struct{ otherTags }

type otherTags = tagapi.Tags

func (tags) List(context.Context, tenancy.Principal) ([]publishing.Tag, error) { return nil, nil }

func (tags) Delete(context.Context, tenancy.Principal, string) (publishing.Tag, error) {
	return publishing.Tag{}, fault.New(fault.NotFound, "tags", "There is no such tag.")
}

type posts struct{ *world }

func (p posts) ChangeSettings(_ context.Context, _ tenancy.Principal, id string, cmd publishing.ChangeSettings) (publishing.SettingsChanged, error) {
	if err := cmd.Validate(); err != nil {
		return publishing.SettingsChanged{}, err
	}
	return publishing.SettingsChanged{}, p.note(id)
}

func (p posts) Check(_ context.Context, _ tenancy.Principal, cmd publishing.CreatePosts) ([]publishing.Checked, error) {
	return make([]publishing.Checked, len(cmd.Entries)), p.note()
}

func (p posts) Create(_ context.Context, _ tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error) {
	if p.panics.Load() {
		panic("secret cause") // a broken handler
	}
	p.computing.Add(1)
	if p.release != nil {
		<-p.release
	}
	if err := held(cmd); err != nil {
		return publishing.CreateResult{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.creates = append(p.creates, cmd)
	if p.err != nil {
		return publishing.CreateResult{}, p.err
	}
	return p.result, cmd.Validate()
}

func (p posts) List(_ context.Context, _ tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists = append(p.lists, q)
	if err := sql(q.Customer); err != nil {
		return publishing.ThreadPage{}, err
	}
	return publishing.ThreadPage{Threads: []publishing.Thread{p.thread}, Total: 41, HasMore: true}, p.err
}

func (p posts) Get(_ context.Context, _ tenancy.Principal, id string) (publishing.PostDetail, error) {
	reason := "by hand"
	return publishing.PostDetail{Thread: p.thread, Events: []publishing.Event{{At: day, Kind: publishing.EventWritten, Reason: &reason}}}, p.note(id)
}

func (p posts) Delete(_ context.Context, _ tenancy.Principal, id string) error { return p.note(id) }

func (p posts) DeleteGroup(_ context.Context, _ tenancy.Principal, group string) error {
	return p.note(group)
}

func (p posts) ChangeStatus(_ context.Context, _ tenancy.Principal, id string, cmd publishing.ChangeStatus) (publishing.StatusChanged, error) {
	if err := cmd.Validate(); err != nil {
		return publishing.StatusChanged{}, err
	}
	if cmd.To == publishing.CreateDraft {
		return publishing.StatusChanged{State: publishing.StateDraft}, p.note(id)
	}
	return publishing.StatusChanged{State: publishing.StateWaiting}, p.note(id)
}

func (p posts) Missing(_ context.Context, _ tenancy.Principal, id string) ([]publishing.RemoteItem, error) {
	return []publishing.RemoteItem{{ID: "remote", URL: "https://platform.test/remote"}}, p.note(id)
}

func (a analytics) Report(_ context.Context, _ tenancy.Principal, q publishing.GetReport) (publishing.Report, error) {
	out := publishing.Report{From: day, To: day, Days: make([]publishing.DayReport, q.Days)}
	if q.Customer != "" {
		out.Customer = &publishing.Customer{Name: "Acme"}
	}
	return out, a.note(q.Customer)
}

func (p posts) SetRelease(_ context.Context, _ tenancy.Principal, id, release string) error {
	return errors.Join(sql(release), p.note(id))
}

type analytics struct{ *world }

func (a analytics) Channel(_ context.Context, _ tenancy.Principal, q publishing.GetAnalytics) (publishing.Analytics, error) {
	return publishing.Analytics{
		Metrics: []publishing.Metric{{Label: "Page views", Points: []publishing.MetricPoint{{Day: day, Value: float64(q.Days)}}, Change: 12.5}},
		AsOf:    day,
	}, a.note(q.Channel)
}

func (a analytics) Post(_ context.Context, _ tenancy.Principal, q publishing.GetPostAnalytics) (publishing.PostAnalytics, error) {
	return publishing.PostAnalytics{Missing: q.Days == 30}, a.note(q.Post)
}

func (a analytics) Figures(_ context.Context, _ tenancy.Principal, q publishing.GetFigures) (publishing.DayFigures, error) {
	if q.Day.IsZero() {
		return publishing.DayFigures{}, fault.New(fault.Invalid, "figures", "date is required")
	}
	return publishing.DayFigures{Day: q.Day, Counts: map[string]float64{"Page views": 3}, Levels: map[string]float64{"Followers": 1.5}}, a.note(q.Channel)
}

type queue struct{ *world }

func (q queue) Pause(_ context.Context, p tenancy.Principal, cmd publishing.SetPause) (publishing.PauseResult, error) {
	if cmd.Scope == publishing.PauseOrganization && !p.Role.Manages() {
		return publishing.PauseResult{}, fault.New(fault.Forbidden, "fake", "Only an administrator may.")
	}
	if q.release != nil {
		<-q.release
	}
	held := q.thread.Root
	return publishing.PauseResult{Paused: cmd.Paused, Held: 3, InFlight: 1, Posts: []publishing.Post{held},
		Channels: map[publishing.ChannelID]string{held.Channel: "News"}, Texts: map[publishing.PostID]string{held.ID: "Hello"}}, q.note(string(cmd.Scope), cmd.ID)
}

func (q queue) QueueStats(_ context.Context, name string) (publishing.QueueStats, error) {
	if name != "publish" {
		return publishing.QueueStats{}, fault.New(fault.NotFound, "fake", "There is no such queue.")
	}
	f := publishing.QueueStats{Due: 2, Publishing: 1, Next: &day}
	if q.sick.Load() {
		f.Overdue, f.Oldest = 1, 90*time.Second
	}
	return f, q.note(name)
}

type channels struct{ *world }

func (c channels) Catalogue() []connector.Descriptor {
	return []connector.Descriptor{{ID: "sandbox", Name: "Sandbox", Editor: "normal", Fields: []connector.Field{{Key: "name", Label: "Name", Type: "text", Validation: ".+"}}}}
}

func (c channels) List(_ context.Context, _ tenancy.Principal, customer string) ([]publishing.Channel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.customer = customer
	return []publishing.Channel{c.thread.Channel}, c.err
}

func (c channels) Disconnect(_ context.Context, _ tenancy.Principal, channel string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnected = channel
	return errors.Join(sql(channel), c.err)
}

func (c channels) Begin(_ context.Context, _ tenancy.Principal, cmd publishing.BeginConnect) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = cmd
	if err := sql(cmd.Refresh, cmd.ReturnURL); err != nil {
		return "", err
	}
	return "the-state", c.err
}

func (c channels) Finish(_ context.Context, cmd publishing.FinishConnect) (publishing.ChannelConnected, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = cmd
	return publishing.ChannelConnected{Channel: c.thread.Channel, Onboarding: true}, c.err
}

type slots struct{ *world }

func (s slots) Find(_ context.Context, _ tenancy.Principal, channel string) (time.Time, error) {
	return day, s.note(channel)
}

func (s slots) FindAny(context.Context, tenancy.Principal) (time.Time, error) { return day, s.note() }

func (s slots) Plan(_ context.Context, _ tenancy.Principal, channel string) (publishing.ChannelPlan, error) {
	return publishing.ChannelPlan{Timezone: "UTC", Times: publishing.DefaultQueueTimes(true), Next: []time.Time{day}}, s.note(channel)
}

func (s slots) SetPlan(_ context.Context, _ tenancy.Principal, channel string, cmd publishing.SetQueuePlan) (publishing.ChannelPlan, error) {
	if err := cmd.Validate(); err != nil {
		return publishing.ChannelPlan{}, err
	}
	return publishing.ChannelPlan{Timezone: "UTC", Times: cmd.WallTimes(time.UTC, day)}, s.note(channel)
}

func (c channels) Customers(context.Context, tenancy.Principal) ([]publishing.Customer, error) {
	return []publishing.Customer{{Name: "A customer"}}, c.note()
}

func (c channels) Platforms(context.Context, tenancy.Principal) ([]publishing.Platform, error) {
	return []publishing.Platform{{ID: "sandbox", Name: "Sandbox", Capabilities: []string{"text"}, Abilities: []string{}, Authorized: true}}, c.note()
}

func (c channels) Authorize(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect, force bool) (publishing.Authorized, error) {
	url, err := c.Begin(ctx, p, cmd)
	if !force {
		url = ""
	}
	return publishing.Authorized{URL: url}, err
}

func (c channels) Platform(_ context.Context, _ tenancy.Principal, channel string) (connector.Descriptor, []connector.Tool, error) {
	return connector.Descriptor{Rules: "Be nice.", MaxLength: 500, Unit: connector.Graphemes}, nil, c.note(channel)
}

func (c channels) Trigger(_ context.Context, _ tenancy.Principal, cmd publishing.TriggerTool) (json.RawMessage, error) {
	return json.RawMessage(`[{"id":"cats"}]`), c.note(cmd.Channel)
}

func (c channels) Choose(_ context.Context, _ tenancy.Principal, cmd publishing.ChooseAccount) (publishing.ChannelConnected, error) {
	return publishing.ChannelConnected{Channel: c.thread.Channel}, errors.Join(sql(cmd.Candidate), c.note(cmd.Channel))
}

func (c channels) ChooseByState(_ context.Context, _ string, cmd publishing.ChooseAccount) (publishing.ChannelConnected, error) {
	return publishing.ChannelConnected{Channel: c.thread.Channel}, errors.Join(sql(cmd.State, cmd.Candidate), c.note(cmd.Channel))
}

func (c channels) Started(context.Context, string, string) (publishing.ConnectRequest, error) {
	return publishing.ConnectRequest{}, c.note()
}

func (c channels) HoldCode(publishing.FinishConnect) (string, error) { return "held", c.note() }

func (c channels) ReleaseCode(string, string) (publishing.FinishConnect, error) {
	return publishing.FinishConnect{}, c.note()
}

func (c channels) Disown(context.Context, string) (publishing.Disowned, error) {
	return publishing.Disowned{Disconnected: true}, c.note()
}

func (c channels) Apps(context.Context, tenancy.Principal) ([]publishing.PlatformApp, error) {
	return []publishing.PlatformApp{{Family: "sandbox-oauth", Name: "Sandbox", Platforms: []string{"sandbox-oauth"}}}, c.note()
}

func (c channels) App(_ context.Context, _ tenancy.Principal, family string) (publishing.PlatformApp, error) {
	return publishing.PlatformApp{Family: "sandbox-oauth", Name: "Sandbox", Platforms: []string{"sandbox-oauth"}}, c.note(family)
}

func (c channels) SetApp(ctx context.Context, p tenancy.Principal, cmd publishing.SetPlatformApp) (publishing.PlatformApp, int, error) {
	app, err := c.App(ctx, p, cmd.Family)
	return app, 0, errors.Join(sql(cmd.ClientID, cmd.Secret), err)
}

func (c channels) DeleteApp(ctx context.Context, p tenancy.Principal, family string) (publishing.PlatformApp, int, error) {
	app, err := c.App(ctx, p, family)
	return app, 0, err
}

type media struct{ *world }

func (m media) Upload(_ context.Context, _ tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error) {
	m.began.Store(true)
	n, err := io.Copy(io.Discard, r)
	if err != nil {
		return publishing.Medium{}, fault.Wrap(fault.Internal, "fake", "", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uploaded = n
	med := picture
	med.OriginalName = filename
	return med, m.err
}

func (m media) UploadFromURL(_ context.Context, _ tenancy.Principal, address string) (publishing.Medium, error) {
	return picture, m.note("from " + address)
}

func (m media) List(_ context.Context, _ tenancy.Principal, q publishing.ListMedia) (publishing.MediaPage, error) {
	return publishing.MediaPage{Media: []publishing.Medium{picture}, Pages: q.Page}, m.note("list " + q.Search)
}

func (m media) SetAlt(_ context.Context, _ tenancy.Principal, medium, alt string) (publishing.Medium, error) {
	changed := picture
	changed.Alt = alt
	return changed, m.note("describe " + medium)
}

func (m media) Delete(_ context.Context, _ tenancy.Principal, medium string) error {
	return m.note("delete " + medium)
}

func (m media) Original(_ context.Context, _ tenancy.Principal, medium string) (publishing.Medium, blob.File, error) {
	return picture, file{Reader: bytes.NewReader(m.file), closed: new(atomic.Bool)}, m.note("original " + medium)
}

func (m media) OwnFile(address string) (key, file string, ours bool) {
	rest, ours := strings.CutPrefix(address, "http://localhost:4000/files/")
	key, file, _ = strings.Cut(rest, "/")
	return key, file, ours
}

func (m media) Stream(_ context.Context, address, _ string) (publishing.VideoStream, error) {
	body := io.NopCloser(bytes.NewReader(m.file))
	return publishing.VideoStream{Body: body, Size: int64(len(m.file))}, m.note("stream " + address)
}

type file struct {
	*bytes.Reader
	closed *atomic.Bool
}

func (f file) Close() error { f.closed.Store(true); return nil }

func (m media) Own(_ context.Context, _ tenancy.Principal, medium string) (publishing.Medium, error) {
	if medium != picture.ID.String() {
		return publishing.Medium{}, fault.New(fault.NotFound, "fake", "There is no such file.")
	}
	return picture, m.note("own " + medium)
}

func (m media) Open(_ context.Context, key, name string) (publishing.Medium, blob.File, error) {
	if key != picture.Key || name != "cat.png" {
		return publishing.Medium{}, nil, fault.New(fault.NotFound, "fake", "There is no such file.")
	}
	return picture, file{Reader: bytes.NewReader(m.file), closed: &m.closed}, nil
}

type limiter struct{ *world }

func (l limiter) Admit(context.Context, tenancy.OrgID) org.Admission {
	l.admitted.Add(1)
	if l.refused.Load() {
		return org.Admission{Limit: 60, Reset: day, RetryAfter: 1500 * time.Millisecond}
	}
	return org.Admission{Allowed: true, Limit: 60, Remaining: 59, Reset: day}
}

type health struct{ *world }

func (h health) Check(context.Context) (map[string]string, bool) {
	if h.sick.Load() {
		return map[string]string{"postgres": "failing"}, false
	}
	return map[string]string{"postgres": "ok"}, true
}

var (
	day          = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	organization = id.New[tenancy.OrgTag]()
	picture      = publishing.Medium{ID: id.New[publishing.MediaTag](), Key: "abcdefghijklmnopqrstuv", Name: "cat", Ext: "png", ContentType: "image/png"}
)

func aThread() publishing.Thread {
	customer := publishing.Customer{ID: id.New[publishing.CustomerTag](), Name: "Acme"}
	channel := publishing.Channel{ID: id.New[publishing.ChannelTag](), Connector: "sandbox", Name: "News", Profile: "news", Customer: &customer}
	why, code := "It was refused.", "rejected"
	return publishing.Thread{
		Channel: channel,
		Media:   map[publishing.MediaID]publishing.Medium{picture.ID: picture},
		Root: publishing.Post{
			ID: id.New[publishing.PostTag](), Group: id.New[publishing.GroupTag](), Channel: channel.ID, State: publishing.StateError,
			PublishDate: day, CreationMethod: publishing.MethodAPI, Settings: []byte(`{"__type":"sandbox"}`), Error: &why, ErrorCode: &code,
			CreatedAt: day, UpdatedAt: day,
			Parts: []publishing.Part{{ID: id.New[publishing.PartTag](), Content: publishing.Content{Text: "Hello"}, Media: []publishing.Attachment{{Media: picture.ID, Alt: "a cat"}}}},
		},
	}
}

type running struct {
	*world
	*edge.Server
	url    string
	log    *syncbuffer.Buffer
	client *http.Transport
}

// start runs the real edge on a loopback listener. vars are added to its environment, and change may replace its ports.
func start(t testing.TB, vars map[string]string, change ...func(*edge.Deps)) *running {
	t.Helper()
	all := map[string]string{"BASE_URL": baseURL}
	for k, v := range vars {
		all[k] = v
	}
	var cfg edge.Config
	if err := env.Load(t.Context(), func(name string) (string, bool) { v, ok := all[name]; return v, ok }, &cfg); err != nil {
		t.Fatal(err)
	}
	w := &world{thread: aThread(), file: []byte("0123456789")}
	w.result = publishing.CreateResult{Created: []publishing.Created{{Post: w.thread.Root.ID, Channel: w.thread.Channel.ID}}}
	w.signIn = tenancy.SignIn{Session: goodSession, Device: "device-token"}
	log := &syncbuffer.Buffer{}
	deps := edge.Deps{
		Posts: posts{world: w}, Queue: queue{world: w}, Channels: channels{world: w}, Slots: slots{world: w}, Tags: tags{}, Media: media{world: w},
		Analytics: analytics{world: w},
		Webhooks:  webhooks{world: w}, Approvals: approvals{world: w}, Notifications: notifications{world: w},
		Accounts: accounts{world: w}, Plans: plans{}, Limiter: limiter{world: w}, Health: health{world: w},
		Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: prometheus.NewRegistry(), Version: "test",
		Clock: clock.Func(func() time.Time { return clock.System{}.Now().Add(time.Duration(w.skew.Load())) }),
	}
	for _, c := range change {
		c(&deps)
	}
	s, err := edge.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	address, stop, err := edgetest.Serve(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	client := &http.Transport{}
	t.Cleanup(client.CloseIdleConnections)
	return &running{world: w, Server: s, url: "http://" + address, log: log, client: client}
}

type answer struct {
	status int
	header http.Header
	body   string
}

// call sends one request over a kept connection. Headers are pairs of names and values.
func (r *running) call(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := r.client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
}

// api is call with a valid API key.
func (r *running) api(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	return r.call(t, method, path, body, append([]string{"Authorization", goodKey, "Content-Type", "application/json"}, headers...)...)
}
