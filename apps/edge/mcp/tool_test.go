package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
	"crier/tests/edgetest"
)

const aDay = 24 * time.Hour

func TestCall_PanicIsResult(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.Panics.Store(true)
	args := `{"socialPost":[{"integrationId":"c1","type":"now","postsAndComments":[{"content":"Hi"}]}]}`
	got := s.use(t, "service_create_post", args)
	got.wantFailure(t, "internal", "", "Internal server error")
	if strings.Contains(got.Body, "secret cause") || !strings.Contains(s.Log.String(), "panic in tool") {
		t.Errorf("answered %s and logged %s, want the cause in the log only", got.Body, s.Log)
	}
	s.Panics.Store(false)
	s.use(t, "service_create_post", args).want(t)
}

// deadlinePosts keeps the deadline of a call.
type deadlinePosts struct {
	edge.Posts
	left *time.Duration
}

func (p deadlinePosts) Delete(ctx context.Context, _ tenancy.Principal, _ string) error {
	if at, ok := ctx.Deadline(); ok {
		*p.left = time.Until(at)
	}
	return nil
}

func TestCall_HasDeadline(t *testing.T) {
	t.Parallel()
	var left time.Duration
	s := serve(t, nil, func(d *edge.Deps) { d.Posts = deadlinePosts{Posts: d.Posts, left: &left} })
	for _, version := range []string{"2025-11-25", "2024-11-05"} {
		left = 0
		a := s.post(t, writer, request("tools/call", `{"name":"service_delete_post","arguments":{"id":"x","confirm":true}}`), "Mcp-Protocol-Version", version)
		edgetest.Want(t, a, 200)
		if left <= 40*time.Second || left > 50*time.Second {
			t.Errorf("%s: the call ends in %s, want 50 s", version, left)
		}
	}
}

func TestArguments_UnknownOneIsNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	got := s.use(t, "service_find_slot", `{"integration_id":"c1"}`)
	got.wantFailure(t, "unknown_argument", "integration_id")
	if !slices.Equal(got.Failure.Allowed, []any{"integrationId"}) || !strings.Contains(got.Failure.Errors, "integrationId is missing") {
		t.Errorf("got %s, want the allowed argument, and the missing one", got.Text)
	}
	got = s.use(t, "service_create_post", `{"socialPost":[{"integrationId":"c1","type":"now","postsAndComments":[{"text":"Hi"}]}]}`)
	got.wantFailure(t, "unknown_argument", "socialPost.0.postsAndComments.0.text")
	if !slices.Contains(got.Failure.Allowed, any("content")) {
		t.Errorf("got %s, want the allowed arguments of a part", got.Text)
	}
	s.use(t, "service_list_groups", `{"x":null}`).wantFailure(t, "unknown_argument", "x")
}

func TestArguments_AreTakenAsModelsSendThem(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, args := range []string{
		`{"integrationId":"c1","days":"30"}`, `{"integrationId":"c1","days":30.0}`, `{"integrationId":"c1","days":3e1}`,
		`{"integrationId":"c1","days":30,"cursor":null}`, `{"integrationId":"c1","days":30,"cursor":""}`,
	} {
		s.use(t, "service_get_channel_analytics", args).want(t, `"total":"30"`)
	}
	s.use(t, "service_get_channel_analytics", `{"integrationId":"c1","days":null}`).want(t, `"total":"7"`)
	s.use(t, "service_list_channels", `null`).want(t)
	edgetest.Want(t, s.post(t, writer, request("tools/call", `{"name":"service_list_channels"}`)), 200, `"structuredContent"`)
	s.use(t, "service_delete_post", `{"id":"x","confirm":"true"}`).want(t)
	for _, post := range []string{
		`{"socialPost":{"integrationId":"c1","type":"now","postsAndComments":{"content":"Hi"},"settings":{"a":1}}}`,
		`{"socialPost":"[{\"integrationId\":\"c1\",\"type\":\"now\",\"postsAndComments\":[{\"content\":\"Hi\"}],\"settings\":[{\"key\":\"a\",\"value\":1}]}]"}`,
		`{"socialPost":[{"integrationId":"c1","type":"now","date":null,"shortLink":"false","isPremium":true,"postsAndComments":[{"content":"Hi","attachments":null}],"settings":"{\"a\":1}"}],"idempotencyKey":null}`,
	} {
		s.use(t, "service_create_post", post).want(t)
		last := s.Creates[len(s.Creates)-1]
		if last.Entries[0].Parts[0].Content != "Hi" || string(last.Entries[0].Settings) != `{"a":1}` {
			t.Errorf("%s: created %+v, want the text and the setting", post, last)
		}
	}
}

func TestArguments_WrongOnesAreNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, c := range []struct {
		tool, args, code, field, words string
	}{
		{"service_get_channel_analytics", `{"integrationId":"c1","days":0}`, "invalid_argument", "days", "from 1 to 366"},
		{"service_get_channel_analytics", `{"integrationId":"c1","days":"many"}`, "invalid_argument", "days", "whole number"},
		{"service_get_channel_analytics", `{"integrationId":"c1","days":1.5}`, "invalid_argument", "days", "whole number"},
		{"service_get_channel_analytics", `{"days":1}`, "missing_argument", "integrationId", "service_list_channels"},
		{"service_get_channel_analytics", `{"integrationId":{},"days":1}`, "invalid_argument", "integrationId", "a string"},
		{"service_get_channel_analytics", `{"integrationId":"c1","cursor":"nonsense"}`, "invalid_argument", "cursor", "nextCursor"},
		{"service_create_post", `{"socialPost":[{"integrationId":"x","type":"draft","postsAndComments":[{"content":"a\u0000b"}]}]}`, "invalid_argument", "socialPost.0.postsAndComments.0.content", "NUL"},
		{"service_get_channel_analytics", `{"integrationId":"\ud83d"}`, "invalid_argument", "", "half a character"},
		{"service_get_channel_analytics", `[1]`, "invalid_argument", "", "an object"},
		{"service_change_post_status", `{"id":"x","status":"publish"}`, "invalid_argument", "status", `"allowed":["draft","schedule"]`},
		{"service_change_post_status", `{"id":"x"}`, "missing_argument", "status", `"allowed":["draft","schedule"]`},
		{"service_delete_post", `{"id":"x"}`, "missing_argument", "confirm", `"allowed":[true]`},
		{"service_delete_post", `{"id":"x","confirm":false}`, "invalid_argument", "confirm", `"allowed":[true]`},
		{"service_delete_post", `{"id":"x","confirm":"sure"}`, "invalid_argument", "confirm", `"allowed":[true,false]`},
		{"service_list_posts", `{"startDate":"2026-01-01","endDate":"2026-01-02T00:00:00Z"}`, "invalid_argument", "startDate", "offset"},
		{"service_list_posts", `{"startDate":"2026-01-01T00:00:00","endDate":"2026-01-02T00:00:00Z"}`, "invalid_argument", "startDate", "offset"},
		{"service_list_posts", `{"startDate":"soon","endDate":"2026-01-02T00:00:00Z"}`, "invalid_argument", "startDate", "ISO 8601"},
		{"service_list_posts", `{"startDate":"2026-01-03T00:00:00Z","endDate":"2026-01-02T00:00:00Z"}`, "invalid_argument", "endDate", "before"},
		{"service_list_posts", `{"startDate":"2026-01-03T00:00:00Z","endDate":"2028-01-02T00:00:00Z"}`, "invalid_argument", "endDate", "366 days"},
		{"service_list_posts", `{"endDate":"2026-01-02T00:00:00Z"}`, "missing_argument", "startDate", ""},
		{"service_get_channel_schema", `{}`, "missing_argument", "integrationId", "service_list_channels"},
		{"service_get_channel_schema", `{"platform":"myspace"}`, "invalid_argument", "platform", `"allowed":[`},
		{"service_trigger_channel_tool", `{"integrationId":"c1","methodName":"none"}`, "not_found", "methodName", "service_get_channel_schema"},
		{"service_update_post_settings", `{"id":"x"}`, "missing_argument", "settings", "postsAndComments"},
		{"service_update_post_settings", `{"id":"x","date":"2020-01-01T00:00:00Z"}`, "invalid_argument", "date", "in the future"},
		{"service_upload_from_url", `{"url":"` + strings.Repeat("x", 5000) + `"}`, "invalid_argument", "url", "4096"},
		{"service_request_approval", `{"id":"x","reviewerEmail":"nobody"}`, "invalid", "reviewerEmail", "email address"},
		{"service_get_overview", `{"days":400}`, "invalid_argument", "days", "from 1 to 365"},
	} {
		got := s.use(t, c.tool, c.args)
		got.wantFailure(t, c.code, c.field, c.words)
	}
	if len(s.IDs) > 10 {
		t.Errorf("the use cases were called with %q", s.IDs)
	}
}

func TestFailure_HasWordsOfPublicAPI(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, c := range []struct {
		err         error
		code, words string
	}{
		{fault.New(fault.NotFound, "x", "There is no such post."), "not_found", `"next":{"tool":"service_list_posts","arguments":{}}`},
		{fault.New(fault.Conflict, "x", "The post is being published right now."), "conflict", "being published"},
		{fault.New(fault.Forbidden, "x", "Only administrators may."), "forbidden", "Only administrators may."},
		{
			&fault.Error{Kind: fault.Quota, Message: "Your plan allows 10 posts.", Limit: &fault.Limit{Name: "posts", Current: 10, Allowed: 10}},
			"quota", "Your plan allows 10 posts.",
		},
		{&fault.Error{Kind: fault.RateLimited, RetryAfter: 1500 * time.Millisecond}, "rate_limited", `"retryAfter":2`},
		{&fault.Error{Kind: fault.Unavailable, RetryAfter: time.Second}, "unavailable", `"retryAfter":1`},
		{fault.New(fault.Upstream, "x", ""), "upstream", "Another server failed."},
		{fault.New(fault.Gone, "x", ""), "gone", "no longer available"},
		{errors.New("secret of the database"), "internal", "Internal server error"},
	} {
		s.Fail(c.err)
		got := s.use(t, "service_delete_post", `{"id":"x","confirm":true}`)
		field := ""
		if c.code == "not_found" {
			field = "id"
		}
		got.wantFailure(t, c.code, field, c.words)
		if strings.Contains(got.Body, "secret") {
			t.Errorf("answered %s, want the cause hidden", got.Body)
		}
	}
	if !strings.Contains(s.Log.String(), "secret of the database") {
		t.Error("the log has no cause of an internal error")
	}
}

func TestListChannels(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := s.Thread.Channel
	got := s.use(t, "service_list_channels", `{"group":"g1"}`)
	got.want(t, `"output":[{"id":"`+c.ID.String()+`","name":"News","platform":"sandbox","display":"news"`,
		`"customer":{"id":"`, `"name":"Acme"}`, `"timezone":"UTC"`, `"localTime":"`, `"now":"`)
	wantNow(t, asList(got.Structured["output"])[0])
	wantNow(t, got.Structured)
	if s.Customer != "g1" {
		t.Errorf("listed the channels of %q, want g1", s.Customer)
	}
}

// manyChannels has channels with long names, and groups.
type manyChannels struct {
	edgetest.Channels
	n int
}

func (m manyChannels) List(_ context.Context, _ tenancy.Principal, customer string) (out []publishing.Channel, err error) {
	for i := range m.n {
		out = append(out, publishing.Channel{
			ID: id.FromUUID[publishing.ChannelTag]([16]byte{byte(i >> 8), byte(i), 1}), Name: fmt.Sprintf("Channel %d <b>&", i),
			Connector: "sandbox", Timezone: "Europe/Vienna", Picture: "https://pictures.test/" + strings.Repeat("p", 200),
		})
	}
	if customer != "" {
		return nil, nil
	}
	return out, nil
}

func (m manyChannels) Catalogue() []connector.Descriptor {
	return []connector.Descriptor{{ID: "bluesky", Rules: "Be brief.", MaxLength: 300, Unit: connector.Graphemes}, {ID: "sandbox"}}
}

func (m manyChannels) Platform(
	_ context.Context, _ tenancy.Principal, channel string,
) (connector.Descriptor, []connector.Tool, error) {
	if channel == "none" {
		return connector.Descriptor{}, nil, publishing.NoChannel("fake")
	}
	return connector.Descriptor{ID: "sandbox", Settings: json.RawMessage(`{"type":"object"}`)}, []connector.Tool{{
		Name: "topics", Description: "Lists topics.", Data: []connector.ToolField{
			{Key: "limit", Type: "number"}, {Key: "deep", Type: "boolean"}, {Key: "word", Type: "string", Required: true},
		},
	}}, nil
}

func (m manyChannels) Trigger(_ context.Context, _ tenancy.Principal, cmd publishing.TriggerTool) (json.RawMessage, error) {
	if cmd.Data["word"] == "object" {
		return json.RawMessage(`{"a":1}`), nil
	}
	data, err := json.Marshal(cmd.Data)
	if err != nil {
		return nil, err
	}
	return json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(string(data)+",", 500), ",") + "]"), nil
}

func withChannels(n int) func(*edge.Deps) {
	return func(d *edge.Deps) { d.Channels = manyChannels{Channels: d.Channels.(edgetest.Channels), n: n} }
}

// outputs follows the cursors of a tool and returns all elements.
func (s service) outputs(t *testing.T, tool, args string, elements func(output any) []any) (all []any, pages int) {
	t.Helper()
	cursor := ""
	for pages < 200 {
		got := s.use(t, tool, strings.TrimSuffix(args, "}")+`,"cursor":"`+cursor+`"}`)
		got.want(t)
		part := elements(got.Structured["output"])
		if len(part) == 0 {
			t.Fatalf("page %d is empty: %s", pages, got.Text)
		}
		all, pages = append(all, part...), pages+1
		next, more := got.Structured["nextCursor"].(string)
		if !more {
			return all, pages
		}
		cursor = next
	}
	t.Fatalf("%s has more than %d pages", tool, pages)
	return nil, 0
}

func asList(output any) []any { return output.([]any) }

func TestLists_ContinueByCursor(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withChannels(300))
	all, pages := s.outputs(t, "service_list_channels", `{"group":null}`, asList)
	seen := map[any]bool{}
	for _, c := range all {
		seen[c.(map[string]any)["id"]] = true
	}
	if len(all) != 300 || len(seen) != 300 || pages < 5 {
		t.Errorf("got %d channels, %d of them different, on %d pages, want 300 on several pages", len(all), len(seen), pages)
	}
	all, pages = s.outputs(t, "service_trigger_channel_tool", `{"integrationId":"c1","methodName":"topics","dataSchema":[{"key":"word","value":"a topic with a long name"}]}`, asList)
	if len(all) != 500 || pages < 2 {
		t.Errorf("got %d topics on %d pages, want 500 on several", len(all), pages)
	}
}

func TestListChannels_UnknownGroupIsNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withChannels(1))
	s.use(t, "service_list_channels", `{"group":"none"}`).wantFailure(t, "not_found", "group", "service_list_groups")
}

func TestChannelSchema(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withChannels(1))
	s.use(t, "service_get_channel_schema", `{"integrationId":"c1"}`).want(t, `"platform":"sandbox"`, `"settings":{"type":"object"}`,
		`"methodName":"topics"`, `{"key":"word","type":"string","description":"","required":true}`)
	s.use(t, "service_get_channel_schema", `{"platform":"SANDBOX","isPremium":true}`).want(t, `"methodName":"topics"`)
	s.use(t, "service_get_channel_schema", `{"platform":"bluesky"}`).want(t, `"rules":"Be brief.","maxLength":300,"lengthUnit":"graphemes","tools":[]`)
	s.use(t, "service_get_channel_schema", `{"integrationId":"none"}`).wantFailure(t, "not_found", "integrationId", "service_list_channels")
	got := s.use(t, "service_get_channel_schema", `{"platform":"myspace"}`)
	if !slices.Equal(got.Failure.Allowed, []any{"bluesky", "sandbox"}) {
		t.Errorf("got %s, want the platforms", got.Text)
	}
}

func TestTrigger_ConvertsValuesAndNamesInputs(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withChannels(1))
	const call = `{"integrationId":"c1","methodName":"topics","dataSchema":`
	s.use(t, "service_trigger_channel_tool", call+`{"word":7,"limit":"3","deep":"true"}}`).want(t, `{"deep":true,"limit":3,"word":"7"}`)
	s.use(t, "service_trigger_channel_tool", call+`{"word":"object"}}`).want(t, `"output":{"a":1}`)
	got := s.use(t, "service_trigger_channel_tool", call+`[{"key":"words","value":"x"}]}`)
	got.wantFailure(t, "unknown_argument", "dataSchema.0.key", "service_get_channel_schema")
	if !slices.Equal(got.Failure.Allowed, []any{"limit", "deep", "word"}) {
		t.Errorf("got %s, want the inputs", got.Text)
	}
	s.use(t, "service_trigger_channel_tool", `{"integrationId":"none","methodName":"topics"}`).wantFailure(t, "not_found", "integrationId")
}

func TestFindSlot(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	got := s.use(t, "service_find_slot", `{"integrationId":"c1"}`)
	got.want(t, `"output":{"date":"2026-01-02T03:04:05.000Z","localDate":"2026-01-02T03:04:05Z","timezone":"UTC","now":"`, `"localNow":"`)
	wantNow(t, got.Structured["output"])
	wantNow(t, got.Structured)
	s.Fail(fault.New(fault.Conflict, "x", "There are no posting times."))
	s.use(t, "service_find_slot", `{"integrationId":"c1"}`).wantFailure(t, "conflict", "")
}

// wantNow fails the test unless an object has the current time in UTC, with milliseconds.
func wantNow(t *testing.T, object any) {
	t.Helper()
	words, _ := object.(map[string]any)["now"].(string)
	at, err := time.Parse("2006-01-02T15:04:05.000Z", words)
	if age := time.Since(at); err != nil || age < -time.Minute || age > time.Minute {
		t.Errorf("got the time %q, want now", words)
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.use(t, "service_upload_from_url", `{"url":"https://example.com/cat.png"}`).want(t, `"id":"`+edgetest.Picture.ID.String()+`"`,
		`"url":"http://crier.test/files/abcdefghijklmnopqrstuv/cat.png"`)
	if !slices.Equal(s.IDs, []string{"from https://example.com/cat.png"}) {
		t.Errorf("uploaded %q", s.IDs)
	}
	s.Fail(fault.New(fault.Invalid, "x", "The file cannot be downloaded."))
	s.use(t, "service_upload_from_url", `{"url":"https://example.com/cat.png"}`).wantFailure(t, "invalid", "url", "cannot be downloaded")
	s.use(t, "service_upload_from_url", `{}`).wantFailure(t, "invalid", "", "cannot be downloaded")
}

func TestUpload_WithoutURLReturnsAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, args := range []string{`{}`, `{"url":null}`, `{"url":""}`} {
		s.use(t, "service_upload_from_url", args).want(t, `"uploadUrl":"http://localhost:4000/upload/cru_token"`,
			`"expiresAt":"2026-01-02T03:04:05.000Z"`, `"method":"POST"`, `"field":"file"`,
			`"curl":"curl -F file=@FILE http://localhost:4000/upload/cru_token"`)
	}
	s.Fail(fault.New(fault.RateLimited, "x", "Your organization has 100 upload addresses."))
	s.use(t, "service_upload_from_url", `{}`).wantFailure(t, "rate_limited", "", "100 upload addresses")
}

func TestOverview(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.use(t, "service_get_overview", `{"customerId":"c1"}`).want(t, `"days":30`, `"customer":{`, `"byDay":[]`, `"recentErrors":[]`, `"total":0`)
	s.Fail(fault.New(fault.NotFound, "x", "There is no such customer."))
	s.use(t, "service_get_overview", `{"customerId":"c1","days":5}`).wantFailure(t, "not_found", "customerId", "service_list_groups")
}

func TestApproval_NeverShowsLink(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(d *edge.Deps) { d.Approvals = linkedApprovals{Approvals: d.Approvals} })
	for _, tool := range []string{"service_get_approval_status", "service_request_approval"} {
		got := s.useAs(t, writer, tool, `{"id":"x"}`)
		got.want(t, `"status":"PENDING"`, `"note":"Please"`)
		if strings.Contains(strings.ToLower(got.Body), "review/") || strings.Contains(got.Body, edgetest.ReviewToken) {
			t.Errorf("%s shows the review link: %s", tool, got.Body)
		}
	}
	s.use(t, "service_request_approval", `{"id":"x","note":"n","reviewerEmail":"eve@example.org","autoSchedule":"true"}`).want(t)
	s.Fail(fault.New(fault.Conflict, "x", "The post is not a draft."))
	s.use(t, "service_request_approval", `{"id":"x"}`).wantFailure(t, "conflict", "", `"next":{"tool":"service_get_post","arguments":{"id":"x"}}`)
}

// TestTools_UnknownIDNamesTheList: each tool that takes an id reports which argument is wrong and
// which tool lists the ids.
func TestTools_UnknownIDNamesTheList(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.Fail(fault.New(fault.NotFound, "x", "There is no such object."))
	for _, c := range []struct{ tool, args, field, list string }{
		{"service_get_channel_schema", `{"integrationId":"x"}`, "integrationId", "service_list_channels"},
		{"service_trigger_channel_tool", `{"integrationId":"x","methodName":"m"}`, "integrationId", "service_list_channels"},
		{"service_find_slot", `{"integrationId":"x"}`, "integrationId", "service_list_channels"},
		{"service_get_channel_analytics", `{"integrationId":"x"}`, "integrationId", "service_list_channels"},
		{"service_get_post", `{"id":"x"}`, "id", "service_list_posts"},
		{"service_update_post_settings", `{"id":"x","settings":{"a":1}}`, "id", "service_list_posts"},
		{"service_change_post_status", `{"id":"x","status":"draft"}`, "id", "service_list_posts"},
		{"service_delete_post", `{"id":"x","confirm":true}`, "id", "service_list_posts"},
		{"service_request_approval", `{"id":"x"}`, "id", "service_list_posts"},
		{"service_get_approval_status", `{"id":"x"}`, "id", "service_list_posts"},
		{"service_get_overview", `{"customerId":"x"}`, "customerId", "service_list_groups"},
	} {
		s.use(t, c.tool, c.args).wantFailure(t, "not_found", c.field, "There is no such object.", `"next":{"tool":"`+c.list+`","arguments":{}}`)
	}
	s.Fail(fault.New(fault.Unavailable, "x", "The database is down."))
	for _, tool := range []string{"service_list_channels", "service_list_groups", "service_get_overview"} {
		s.use(t, tool, `{}`).wantFailure(t, "unavailable", "", "The database is down.")
	}
}

// linkedApprovals returns requests with a review link.
type linkedApprovals struct{ edge.Approvals }

func linked(a publishing.Approval, err error) (publishing.Approval, error) {
	note := "Please"
	a.Note, a.ReviewURL = &note, edgetest.BaseURL+"/review/"+edgetest.ReviewToken
	return a, err
}

func (l linkedApprovals) Status(ctx context.Context, p tenancy.Principal, post string) (publishing.Approval, error) {
	return linked(l.Approvals.Status(ctx, p, post))
}

func (l linkedApprovals) Request(
	ctx context.Context, p tenancy.Principal, post string, cmd publishing.RequestApproval,
) (publishing.Approval, error) {
	return linked(l.Approvals.Request(ctx, p, post, cmd))
}

func TestStatus_MustAskNamesApproval(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.use(t, "service_change_post_status", `{"id":"X","status":"schedule"}`).want(t, `"id":"x","state":"QUEUE"`)
	s.use(t, "service_change_post_status", `{"id":"x","status":"draft"}`).want(t, `"state":"DRAFT"`)
	s.Fail(fault.New(fault.Forbidden, "x", "A person must approve."))
	s.useAs(t, mustAsk, "service_change_post_status", `{"id":"x","status":"schedule"}`).wantFailure(t, "forbidden", "",
		`"next":{"tool":"service_request_approval","arguments":{"id":"x"}}`)
}

func TestCreate_MustAskNamesPostToMakeADraft(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	date := ahead(aDay)
	draft, schedule, now := entry("c1", "draft", date, ""), entry("c1", "schedule", date, ""), entry("c1", "now", "", "")
	for posts, field := range map[string]string{
		schedule: "socialPost.0.type", now: "socialPost.0.type", draft + "," + schedule: "socialPost.1.type",
		schedule + "," + draft: "socialPost.0.type", "null," + draft + "," + now: "socialPost.2.type",
	} {
		s.useAs(t, mustAsk, "service_create_post", `{"socialPost":[`+posts+`]}`).wantFailure(t, "forbidden", field,
			`"allowed":["draft"]`, "type draft", `"next":{"tool":"service_request_approval"`)
	}
	if len(s.Creates) != 0 {
		t.Errorf("created %+v, want nothing", s.Creates)
	}
	s.useAs(t, mustAsk, "service_create_post", `{"socialPost":[`+draft+","+draft+`]}`).want(t)
}
