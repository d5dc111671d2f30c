package post

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

// ListPosts returns the endpoint that lists posts as a JSON array. The endpoint returns Invalid if
// the array would exceed 24 MB.
func (a *API) ListPosts() route.Endpoint {
	return route.JSON(describeList(), a.listPosts(false), route.Answer[[]record.Item](http.StatusOK, "OK"))
}

// ListPostsInEnvelope is like ListPosts, but its endpoint responds with {"posts": […]}. It serves
// GET /api/public/v1/posts.
func (a *API) ListPostsInEnvelope() route.Endpoint {
	return route.JSON(describeList(), a.listPosts(true), route.Answer[Enveloped](http.StatusOK, "OK"))
}

func describeList() huma.Operation {
	d := route.Describe("Posts", "List the posts in a date range, or a page of all stored posts", 400)
	d.Description = "To request a date range, send startDate and endDate. To request a page, send page, limit or " +
		"both. A date range includes every occurrence of repeated posts. The headers X-Total-Count and X-Has-More " +
		"are returned only for a page. A date range can contain at most 10,000 posts, 8 MB of text and settings, and " +
		"24 MB of JSON; the byte limits also apply to a page. With format=html, contents are returned as sanitized " +
		"HTML, and plain text is converted to paragraphs. With format=text, contents are returned as plain text. " +
		"Without format, contents are returned as they were sent."
	d.SkipValidateParams = true // listInput.query validates them, and its messages name the bounds
	return d
}

type listInput struct {
	Start    string            `query:"startDate" doc:"ISO 8601; UTC if it has no offset. Requires endDate."`
	End      string            `query:"endDate" doc:"At most 366 days after startDate. A date without a time means midnight."`
	Page     route.OptionalInt `query:"page" doc:"Page number, starting at 0 (default 0). Ignored if dates are sent."`
	Limit    route.OptionalInt `query:"limit" doc:"Posts per page, 1 to 100 (default 20). Ignored if dates are sent."`
	Customer string            `query:"customer" doc:"Only the channels of this channel group."`
	Group    string            `query:"group" doc:"Same as customer."`
	Format   string            `query:"format" enum:"html,text" doc:"Format to which all contents are converted."`
}

// Enveloped is the response of ListPostsInEnvelope.
type Enveloped struct {
	Posts []record.Item `json:"posts"`
}

type listOutput struct {
	Total   string `header:"X-Total-Count" doc:"Total number of posts. Beyond this page, at most 10,000 posts are counted."`
	HasMore string `header:"X-Has-More" doc:"true or false: whether there is another page. Only with page or limit."`
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

// checkFormat returns a fault for an unknown format. The empty format is valid.
func checkFormat(format string) []fault.Field {
	if format == "" || format == string(publishing.ContentHTML) || format == string(publishing.ContentText) {
		return nil
	}
	return []fault.Field{{Name: "format", Message: "must be one of: html, text"}}
}

// query returns the query for the use case: a date range if the request has a date, otherwise a
// page. If any parameter is invalid, query returns an Invalid error that lists all invalid
// parameters.
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
			Kind: fault.Invalid, Op: "post.list", Message: "The query is not valid.", Fields: fields,
		}
	}
	return q, nil
}

func (in *listInput) dates(q *publishing.ListPosts) (fields []fault.Field) {
	parse := func(name, s string) time.Time {
		t, rule := record.DateOrRule(s)
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

func (in *listInput) page(q *publishing.ListPosts) []fault.Field {
	number, wrong := in.Page.Between("page", 0, route.MaxPage, 0)
	limit, wrongLimit := in.Limit.Between("limit", 1, publishing.MaxPageLimit, publishing.DefaultPageLimit)
	q.Page = &publishing.Page{Number: number, Limit: limit}
	return append(wrong, wrongLimit...)
}

const (
	// MaxListAnswer is the maximum size of a list of posts, in bytes of JSON. A list of 10,000
	// ordinary posts is smaller.
	MaxListAnswer = 24 << 20
	listPiece     = 256 << 10 // bytes
)

// items encodes the threads as a JSON list, in an envelope if enveloped is true. It encodes one
// item at a time and returns Invalid as soon as the response is too large. Because of markup,
// escapes and later occurrences, the response can be many times larger than the stored posts.
//
// The response is returned in pieces. A single growing buffer would be copied each time it grows
// and would need three times as much memory.
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
		if err := e.Encode(a.deps.Base.Item(t, format)); err != nil {
			return nil, fault.Wrap(fault.Internal, "post.items", "", err)
		}
		if size+b.Len() > MaxListAnswer {
			return nil, fault.New(fault.Invalid, "post.items",
				"The list would be larger than 24 MB; ask for a shorter range, or for fewer posts per page.")
		}
		if b.Len() > listPiece {
			pieces, size, b = append(pieces, b.Bytes()), size+b.Len(), &bytes.Buffer{}
		}
	}
	b.WriteString(after)
	return append(pieces, b.Bytes()), nil
}
