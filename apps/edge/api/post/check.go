package post

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
)

// CheckPostDto documents the body of POST /posts/check. It is like the body of POST /posts, but
// only the entries are required.
type CheckPostDto struct{}

// TransformSchema implements huma.SchemaTransformer.
func (CheckPostDto) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	s := checkMembers.pick(r, checkPostDocs(), "posts")
	s.Properties["date"].Examples = nil
	return s
}

// checkPostDocs maps each documented member of the POST /posts/check body to its description.
func checkPostDocs() map[string]string {
	const same = "As in POST /posts."
	return map[string]string{
		"type": same, "date": same + " Required if type is set.", "tags": same, "inter": same, "interUntil": same,
		"interCount": same, "posts": "One entry per channel.", "ai": "Has no effect yet.",
	}
}

// checkMembers defines the members of the POST /posts/check body. They include the members of POST
// /posts that have no effect on a check. These are decoded and validated, but not documented.
var checkMembers = membersOf(append([]member[publishing.CreatePosts]{{
	name: "ai", schema: flag, decode: func(n node, _ *publishing.CreatePosts) { n.flag() },
}}, createMembers.list...)...)

// CheckResponse holds one result per entry, in order. Passed is true if all entries are valid.
type CheckResponse struct {
	Passed  bool          `json:"passed" doc:"Whether all entries are valid."`
	Results []CheckResult `json:"results" doc:"One result per entry, in the order of the request."`
}

// CheckResult is the result of applying the rules to one entry. Checker is always empty.
type CheckResult struct {
	ID                string      `json:"id" doc:"Channel id from the request."`
	Identifier        string      `json:"identifier" doc:"Platform id; empty for an unknown channel."`
	Name              string      `json:"name" doc:"Name of the channel."`
	Valid             bool        `json:"valid" doc:"Whether the entry follows all rules."`
	SettingsError     bool        `json:"settingsError" doc:"Whether a platform setting is wrong or missing."`
	Errors            CheckErrors `json:"errors"`
	EmptyContent      bool        `json:"emptyContent" doc:"Whether the first part has neither text nor media."`
	TooLong           bool        `json:"tooLong" doc:"Whether a part is longer than the platform allows."`
	MaximumCharacters int         `json:"maximumCharacters" doc:"Maximum length of one part, in the platform's unit; 0 for no limit."`
	Length            int         `json:"length" doc:"Length of the longest part, in the platform's unit."`
	Problems          []string    `json:"problems" doc:"All problems, each as a sentence."`
	Checker           []string    `json:"checker" maxItems:"0" doc:"Always empty."`
}

// CheckErrors is the first problem with an entry. If there is none, CheckErrors is empty and is
// encoded as the JSON value true.
type CheckErrors string

// MarshalJSON encodes an empty e as true and any other e as a string. Its error is always nil.
func (e CheckErrors) MarshalJSON() ([]byte, error) {
	if e == "" {
		return []byte("true"), nil
	}
	return json.Marshal(string(e))
}

// Schema returns a schema that allows a boolean or a string.
func (CheckErrors) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "The first problem, or true if there is none.",
		OneOf:       []*huma.Schema{{Type: huma.TypeBoolean}, {Type: huma.TypeString}},
	}
}

type checkOutput struct{ Body CheckResponse }

// CheckPosts returns the endpoint that checks posts without storing them. A check does not count
// toward any quota.
func (a *API) CheckPosts() route.Endpoint {
	d := route.Describe("Posts", "Check posts against platform rules without storing them", 400, 413)
	d.Description = "Send the body that you would send to POST /posts, or only its posts. Errors that POST /posts " +
		"detects before it reads the channels, such as an invalid type or date, return 400 here too. Each entry is " +
		"then checked as if it were scheduled, even if the type is draft; POST /posts itself accepts any draft that " +
		"is not empty. Rules that depend on other posts or on the time of the request are not checked: the plan " +
		"limit (402), whether group and value[].id name a post that can be changed now (400, 409), whether a " +
		"repetition can start at this post, and the Idempotency-Key."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.checkPosts, route.RequestBody[CheckPostDto]())
}

func (a *API) checkPosts(ctx context.Context, _ *struct{}) (*checkOutput, error) {
	cmd, err := decodeCheck(request.From(ctx).Body.Loaded(), a.deps.Clock.Now())
	if err != nil {
		return nil, err
	}
	results, err := a.deps.Posts.Check(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, record.WithJSONNames(err)
	}
	out := &checkOutput{Body: CheckResponse{Passed: true, Results: make([]CheckResult, 0, len(results))}}
	for _, r := range results {
		out.Body.Passed = out.Body.Passed && len(r.Problems) == 0
		out.Body.Results = append(out.Body.Results, checkResult(r))
	}
	return out, nil
}

func checkResult(r publishing.Checked) CheckResult {
	out := CheckResult{
		ID: r.ID, Identifier: r.Connector, Name: r.Name, Valid: len(r.Problems) == 0, SettingsError: r.SettingsProblem,
		EmptyContent: r.Empty, TooLong: r.TooLong(), MaximumCharacters: r.MaxLength, Length: r.Length,
		Problems: []string{}, Checker: []string{},
	}
	if len(r.Problems) > 0 {
		out.Errors, out.Problems = CheckErrors(r.Problems[0]), r.Problems
	}
	return out
}

// decodeCheck decodes a POST /posts/check body. If the body has no type, its posts are checked as
// if they were to be scheduled. If it also has no date, the check assumes the current time.
// decodeCheck returns Invalid in the same cases as decodeCreate.
func decodeCheck(body []byte, now time.Time) (publishing.CreatePosts, error) {
	n, err := parse(body, "post.check")
	if err != nil {
		return publishing.CreatePosts{}, err
	}
	var cmd publishing.CreatePosts
	o := checkMembers.decode(n, &cmd)
	if o.get("type").null() {
		cmd.Type = publishing.CreateSchedule
		if o.get("date").null() {
			cmd.Date = now
		}
	}
	return cmd, withRules(n.faults, cmd)
}
