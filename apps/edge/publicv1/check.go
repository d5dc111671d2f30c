package publicv1

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
)

// CheckPostDto documents the body of POST /posts/check. Its entries are decoded like those of POST /posts.
type CheckPostDto struct {
	Posts []CreateEntry `json:"posts" minItems:"1" doc:"One entry per channel."`
	AI    bool          `json:"ai,omitempty" doc:"Has no effect yet."`
}

// CheckAnswer has one result for each entry, in their order. Passed is true if all are valid.
type CheckAnswer struct {
	Passed  bool          `json:"passed"`
	Results []CheckResult `json:"results"`
}

// CheckResult is what the rules find in one entry. Checker is always empty.
type CheckResult struct {
	ID                string      `json:"id" doc:"Channel id as it was sent."`
	Identifier        string      `json:"identifier" doc:"Platform, empty for an unknown channel."`
	Name              string      `json:"name" doc:"Name of the channel."`
	Valid             bool        `json:"valid"`
	SettingsError     bool        `json:"settingsError" doc:"Whether a setting of the platform is wrong or missing."`
	Errors            CheckErrors `json:"errors"`
	EmptyContent      bool        `json:"emptyContent" doc:"Whether the first part has neither text nor media."`
	TooLong           bool        `json:"tooLong"`
	MaximumCharacters int         `json:"maximumCharacters" doc:"Of one part, in the unit of the platform; 0: no limit."`
	Length            int         `json:"length" doc:"Of the longest part, in the unit of the platform."`
	Problems          []string    `json:"problems" doc:"Every problem, as a sentence."`
	Checker           []struct{}  `json:"checker" doc:"Always empty."`
}

// CheckErrors is the first problem. It is the JSON value true when there is none.
type CheckErrors string

// MarshalJSON returns true or the text. Its error is always nil.
func (e CheckErrors) MarshalJSON() ([]byte, error) {
	if e == "" {
		return []byte("true"), nil
	}
	return json.Marshal(string(e))
}

// Schema returns the schema of true or a text.
func (CheckErrors) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "The first problem, or true when there is none.",
		OneOf:       []*huma.Schema{{Type: huma.TypeBoolean}, {Type: huma.TypeString}},
	}
}

type checkOutput struct{ Body CheckAnswer }

// CheckPosts returns the endpoint that applies all rules to posts without storing them. It counts for no quota.
func (a *API) CheckPosts() route.Endpoint {
	d := describe("Check posts by all rules without storing them", 400, 413)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.checkPosts, route.RequestBody[CheckPostDto]())
}

func (a *API) checkPosts(ctx context.Context, _ *struct{}) (*checkOutput, error) {
	cmd, err := decodeCheck(request.From(ctx).Body.Loaded())
	if err != nil {
		return nil, err
	}
	results, err := a.deps.Posts.Check(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, withJSONNames(err)
	}
	out := &checkOutput{Body: CheckAnswer{Passed: true, Results: make([]CheckResult, 0, len(results))}}
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
		Problems: []string{}, Checker: []struct{}{},
	}
	if len(r.Problems) > 0 {
		out.Errors, out.Problems = CheckErrors(r.Problems[0]), r.Problems
	}
	return out
}

// decodeCheck decodes a body of POST /posts/check. Its error is Invalid, like that of decodeCreate.
func decodeCheck(body []byte) (publishing.CheckPosts, error) {
	n, err := parse(body, "publicv1.check")
	if err != nil {
		return publishing.CheckPosts{}, err
	}
	o := n.object("posts", "ai")
	o.get("ai").flag()
	cmd := publishing.CheckPosts{Entries: decodeEntries(o.get("posts"))}
	return cmd, n.faults.Err("publicv1.check", "The post is not valid.")
}
