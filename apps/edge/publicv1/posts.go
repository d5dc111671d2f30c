package publicv1

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

type createInput struct {
	Key string `header:"Idempotency-Key" doc:"At most 255 visible ASCII characters."`
}

// Created is the answer to one entry of POST /posts.
type Created struct {
	PostID      string `json:"postId" doc:"Id of the post."`
	Integration string `json:"integration" doc:"Channel id."`
	ApprovalEffect
}

type createOutput struct {
	Replayed string    `header:"Idempotent-Replayed" doc:"true when this is the result of an earlier request."`
	Mismatch string    `header:"Idempotent-Mismatch" doc:"true when the body differs from that of the earlier request."`
	Body     []Created `doc:"One entry per channel, in the order of the request."`
}

// CreatePosts returns the endpoint that creates and updates posts. It decodes the body without huma, because clients
// send more forms than the schema has.
func (a *API) CreatePosts() route.Endpoint {
	d := describe("Publish, schedule or draft a post on one or more channels", 400, 402, 403, 409, 413)
	d.Description = "A request that repeats an Idempotency-Key creates nothing and returns the first result. An entry that " +
		"names a post with group or value[].id replaces it; the page /docs/editing says how. 409 with Retry-After: a " +
		"request with the same key is running, or the post to replace is being published; repeat it after the wait. 409 " +
		"without it: the post is or may be published, and republish: true publishes it once more. A post that was approved " +
		"keeps its approval if its content stays the same; with other content it is a draft until it is approved again, " +
		"and the answer has state and approval."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.createPosts, route.RequestBody[CreateRequest]())
}

func (a *API) createPosts(ctx context.Context, in *createInput) (*createOutput, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	cmd, err := decodeCreate(request.From(ctx).Body.Loaded())
	if err != nil {
		return nil, err
	}
	cmd.IdempotencyKey = in.Key
	res, err := a.deps.Posts.Create(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, withJSONNames(err)
	}
	return created(res), nil
}

func created(res publishing.CreateResult) *createOutput {
	out := &createOutput{Body: make([]Created, 0, len(res.Created))}
	for _, c := range res.Created {
		out.Body = append(out.Body, Created{
			PostID: c.Post.String(), Integration: c.Channel.String(), ApprovalEffect: approvalEffect(c.Approval),
		})
	}
	if res.Replayed {
		out.Replayed = "true"
	}
	if res.Mismatch {
		out.Mismatch = "true"
	}
	return out
}

// ListPosts returns the endpoint that lists posts as a JSON array. It is Invalid if the array would exceed 24 MB.
func (a *API) ListPosts() route.Endpoint {
	return route.JSON(describeList(), a.listPosts(false), route.Answer[[]Item](http.StatusOK, "OK"))
}

// ListPostsInEnvelope returns the same endpoint with the answer {"posts": […]}, for GET /api/public/v1/posts.
func (a *API) ListPostsInEnvelope() route.Endpoint {
	return route.JSON(describeList(), a.listPosts(true), route.Answer[Enveloped](http.StatusOK, "OK"))
}

func describeList() huma.Operation {
	d := describe("List the posts of a date range, or a page of all stored posts", 400)
	d.Description = "Send startDate and endDate, or page, limit or both. The list of a date range includes every " +
		"occurrence of repeated posts; only a page has the headers X-Total-Count and X-Has-More. A range may have at " +
		"most 10,000 posts, 8 MB of text and settings, and 24 MB of JSON; the limits of bytes apply to a page too. " +
		"With format=html contents are sanitised HTML, plain text as paragraphs; with format=text they are plain " +
		"text; otherwise they are returned as they were sent."
	d.SkipValidateParams = true // listInput.query validates them, and its messages name the bounds
	return d
}

type listInput struct {
	Start    string      `query:"startDate" doc:"ISO 8601; UTC without an offset. Requires endDate."`
	End      string      `query:"endDate" doc:"At most 366 days after startDate. A date alone is midnight."`
	Page     optionalInt `query:"page" doc:"Number of the page, from 0 (default 0). Only without dates."`
	Limit    optionalInt `query:"limit" doc:"Posts of a page, 1 to 100 (default 20). Only without dates."`
	Customer string      `query:"customer" doc:"Only the channels of this channel group."`
	Group    string      `query:"group" doc:"The same as customer."`
	Format   string      `query:"format" enum:"html,text" doc:"Convert every content to this format."`
}

// Enveloped is the list of posts of ListPostsInEnvelope.
type Enveloped struct {
	Posts []Item `json:"posts"`
}

type listOutput struct {
	Total   string `header:"X-Total-Count" doc:"Number of posts; at most 10,000 after this page are counted."`
	HasMore string `header:"X-Has-More" doc:"true or false; only with page or limit."`
	Body    func(huma.Context)
}

func (a *API) listPosts(enveloped bool) func(context.Context, *listInput) (*listOutput, error) {
	return func(ctx context.Context, in *listInput) (*listOutput, error) {
		q, err := in.query()
		if err != nil {
			return nil, err
		}
		page, err := a.deps.Posts.List(ctx, request.Principal(ctx), q)
		if err != nil {
			return nil, err
		}
		items, err := a.items(page.Threads, in.Format, enveloped)
		if err != nil {
			return nil, err
		}
		out := &listOutput{Body: route.Body("application/json", items)}
		if q.Page != nil {
			out.Total, out.HasMore = strconv.Itoa(page.Total), strconv.FormatBool(page.HasMore)
		}
		return out, nil
	}
}

// checkFormat returns the fault of an unknown format. The empty one is valid.
func checkFormat(format string) []fault.Field {
	if format == "" || format == string(publishing.ContentHTML) || format == string(publishing.ContentText) {
		return nil
	}
	return []fault.Field{{Name: "format", Message: "must be one of: html, text"}}
}

// query returns the query of publishing: by dates if one is given, else by page. Its error is Invalid, with every wrong
// parameter.
func (in *listInput) query() (publishing.ListPosts, error) {
	q := publishing.ListPosts{Customer: in.Customer}
	if q.Customer == "" {
		q.Customer = in.Group
	}
	var fields []fault.Field
	switch {
	case in.Start != "" || in.End != "":
		fields = in.dates(&q)
	case in.Page.IsSet || in.Limit.IsSet:
		fields = in.page(&q)
	default:
		fields = []fault.Field{{Name: "startDate", Message: "is required"}, {Name: "endDate", Message: "is required"}}
	}
	fields = append(fields, checkFormat(in.Format)...)
	if len(fields) > 0 {
		return q, &fault.Error{
			Kind: fault.Invalid, Op: "publicv1.list", Message: "The query is not valid.", Fields: fields,
		}
	}
	return q, nil
}

func (in *listInput) dates(q *publishing.ListPosts) (fields []fault.Field) {
	parse := func(name, s string) time.Time {
		t, rule := parseDate(s)
		if s == "" {
			rule = "is required"
		}
		if rule != "" {
			fields = append(fields, fault.Field{Name: name, Message: rule})
		}
		return t
	}
	q.Start, q.End = parse("startDate", in.Start), parse("endDate", in.End)
	if len(fields) == 0 && q.End.Before(q.Start) {
		fields = append(fields, fault.Field{Name: "endDate", Message: "must not be before startDate"})
	}
	if len(fields) == 0 && q.End.Sub(q.Start) > publishing.MaxRange {
		fields = append(fields, fault.Field{Name: "endDate", Message: "must be at most 366 days after startDate"})
	}
	return fields
}

const maxPage = 1_000_000

func (in *listInput) page(q *publishing.ListPosts) []fault.Field {
	number, wrong := in.Page.between("page", 0, maxPage, 0)
	limit, wrongLimit := in.Limit.between("limit", 1, publishing.MaxPageLimit, publishing.DefaultPageLimit)
	q.Page = &publishing.Page{Number: number, Limit: limit}
	return append(wrong, wrongLimit...)
}

// optionalInt is a whole number of a query as it was sent. It is not parsed by huma, so that the fault of a wrong
// number can name the bounds.
type optionalInt struct {
	Text  string
	IsSet bool
}

func (optionalInt) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeInteger} }

// Receiver returns the field that huma sets.
func (o *optionalInt) Receiver() reflect.Value { return reflect.ValueOf(o).Elem().Field(0) }

// OnParamSet is called by huma with whether the query has the parameter.
func (o *optionalInt) OnParamSet(isSet bool, _ any) { o.IsSet = isSet }

// between returns the number, or otherwise if it is absent. If it is no number from least to most, it returns the fault
// of the field.
func (o *optionalInt) between(name string, least, most, otherwise int) (int, []fault.Field) {
	if !o.IsSet {
		return otherwise, nil
	}
	n, err := strconv.Atoi(o.Text)
	if err != nil || n < least || n > most {
		rule := "must be a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
		return 0, []fault.Field{{Name: name, Message: rule}}
	}
	return n, nil
}

const (
	// MaxListAnswer is the size of a list of posts, in bytes of JSON; 10,000 ordinary posts take less.
	MaxListAnswer = 24 << 20
	listPiece     = 256 << 10 // bytes
)

// items returns the list as JSON, in an envelope if wanted. It encodes one item after another and returns Invalid
// as soon as the answer is too large: markup, escapes and later occurrences can make it many times larger than the
// stored posts. The answer is in pieces because one growing buffer would be copied, and would need three times the
// memory.
func (a *API) items(threads []publishing.Thread, format string, enveloped bool) (net.Buffers, error) {
	before, after := "[", "]"
	if enveloped {
		before, after = `{"posts":[`, "]}"
	}
	pieces, size, b := net.Buffers{[]byte(before)}, 0, &bytes.Buffer{}
	for i, t := range threads {
		if i > 0 {
			b.WriteByte(',')
		}
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		if err := e.Encode(a.item(t, format)); err != nil {
			return nil, fault.Wrap(fault.Internal, "publicv1.items", "", err)
		}
		if size+b.Len() > MaxListAnswer {
			return nil, fault.New(fault.Invalid, "publicv1.items",
				"The list would be larger than 24 MB; ask for a shorter range, or for fewer posts a page.")
		}
		if b.Len() > listPiece {
			pieces, size, b = append(pieces, b.Bytes()), size+b.Len(), &bytes.Buffer{}
		}
	}
	b.WriteString(after)
	return append(pieces, b.Bytes()), nil
}

// GetPost returns the endpoint of one post with its timeline. An id that does not parse is NotFound, not Invalid.
func (a *API) GetPost() route.Endpoint {
	return route.JSON(explain(describe("Get a post with its channel, media and timeline", 400, 404),
		"posts[0] says what became of it: state, releaseURL, error and errorCode."), a.getPost)
}

type getInput struct {
	ID     string `path:"id" doc:"Post id."`
	Format string `query:"format" enum:"html,text" doc:"As in the list of posts."`
}

type detailOutput struct{ Body Detail }

func (a *API) getPost(ctx context.Context, in *getInput) (*detailOutput, error) {
	d, err := a.deps.Posts.Get(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &detailOutput{Body: a.detail(d, in.Format)}, nil
}

// DeletePost returns the endpoint that deletes a post with its group. Of a repeated post it skips one occurrence.
func (a *API) DeletePost() route.Endpoint {
	d := describe("Delete a post with its whole group; published posts stay on the platform. "+
		"Of a repeated post this skips one occurrence", 404)
	d.Description = "A post that is being published may go out all the same. To take a post out of the queue and keep it, " +
		"make it a draft with PUT /posts/{id}/status."
	return route.JSON(d, a.deletePost)
}

type idInput struct {
	ID string `path:"id" doc:"Post id."`
}

// Named is the id of an entity: the answer of routes that delete it, and a channel in a request.
type Named struct {
	ID string `json:"id" doc:"Id, in lower case."`
}

type namedOutput struct{ Body Named }

// named returns the answer with an id of a request. All answers have ids in lower case.
func named(id string) *namedOutput { return &namedOutput{Body: Named{ID: strings.ToLower(id)}} }

func (a *API) deletePost(ctx context.Context, in *idInput) (*namedOutput, error) {
	if err := a.deps.Posts.Delete(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return named(in.ID), nil
}

// DeleteGroup returns the endpoint that deletes a group of posts. It ends a repeated post.
func (a *API) DeleteGroup() route.Endpoint {
	return route.JSON(explain(describe("Delete a whole group of posts; this ends a repeated post", 404),
		"group is that of the post. What is published stays on the platform, and a post that is being "+
			"published may go out all the same."), a.deleteGroup)
}

type groupInput struct {
	Group string `path:"group" doc:"Group id."`
}

func (a *API) deleteGroup(ctx context.Context, in *groupInput) (*namedOutput, error) {
	if err := a.deps.Posts.DeleteGroup(ctx, request.Principal(ctx), in.Group); err != nil {
		return nil, err
	}
	return named(in.Group), nil
}

// ChangeStatus returns the endpoint that makes a post a draft or schedules it. It is Conflict while the post is being
// published.
func (a *API) ChangeStatus() route.Endpoint {
	d := describe("Make a post a draft, or schedule it", 400, 402, 403, 404, 409, 413)
	d.Description = "A post that is scheduled goes out at its date, and at once if the date is past. The date stays as it " +
		"is: to set another one, send POST /posts with the group of the post, type schedule and the date. A draft is not " +
		"published before it is scheduled. All posts of the group change together. 409 with Retry-After: the post is being " +
		"published, so read it after the wait. 409 without it: the post is or may be published, and republish: true " +
		"publishes it once more; or its content is not what was approved, and override: true schedules it nevertheless."
	return route.JSON(d, a.changeStatus)
}

// StatusRequest is the body that makes a post a draft or schedules it.
type StatusRequest struct {
	Status    string `json:"status"`
	Republish bool   `json:"republish,omitempty" doc:"Must be true for a post that is or may be published."`
	Override  bool   `json:"override,omitempty" doc:"Schedules a post whose content is not what was approved. For administrators and their keys; recorded in the audit log."`
}

// TransformSchema lists the values of status in the document only. The service refuses others, after it has found the
// post, so that an unknown post is 404.
func (StatusRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["status"].Description = "draft takes the post out of the queue; schedule puts it there."
	s.Properties["status"].Extensions = map[string]any{"enum": []string{"draft", "schedule"}}
	return s
}

type statusInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body StatusRequest
}

// StatusAnswer is the new state of a post. ID is in lower case, also if the request has it in upper case.
type StatusAnswer struct {
	ID    string `json:"id" doc:"Id of the post."`
	State string `json:"state" enum:"DRAFT,QUEUE" doc:"Its state now."`
}

type statusOutput struct{ Body StatusAnswer }

func (a *API) changeStatus(ctx context.Context, in *statusInput) (*statusOutput, error) {
	cmd := publishing.ChangeStatus{
		To: publishing.CreateType(in.Body.Status), Republish: in.Body.Republish, Override: in.Body.Override,
	}
	changed, err := a.deps.Posts.ChangeStatus(ctx, request.Principal(ctx), in.ID, cmd)
	if err != nil {
		return nil, withJSONNames(err)
	}
	return &statusOutput{Body: StatusAnswer{ID: strings.ToLower(in.ID), State: stateName(changed.State)}}, nil
}
