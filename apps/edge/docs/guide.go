package docs

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"crier/apps/edge/problem"
	"crier/platform/fault"
)

// errorEntry is an entry of problem.Catalogue, together with the public API's operations that can
// respond with the entry's status.
type errorEntry struct {
	problem.Entry
	Operations []operation
}

func errorEntries(catalogue []problem.Entry, public []group) []errorEntry {
	out := make([]errorEntry, len(catalogue))
	for i, e := range catalogue {
		out[i].Entry = e
		for _, g := range public {
			for _, o := range g.Operations {
				if o.refusesWith(strconv.Itoa(e.Status)) {
					out[i].Operations = append(out[i].Operations, o)
				}
			}
		}
	}
	return out
}

func (o operation) refusesWith(status string) bool {
	return slices.ContainsFunc(o.Refusals, func(a answer) bool { return a.Status == status })
}

// errorBody is the body of an error response.
type errorBody struct{ Title, JSON string }

// errorBodies returns an example of each form of error body. The examples are created by the code
// that responds to requests.
func errorBodies() ([]errorBody, error) {
	const op, billing = "docs.errorBodies", "https://crier.example.com/app/billing"
	examples := []struct {
		title string
		fault *fault.Error
	}{
		{title: "An error", fault: &fault.Error{Kind: fault.NotFound, Op: op, Message: "There is no such post."}},
		{title: "Invalid fields", fault: &fault.Error{
			Kind: fault.Invalid, Op: op, Message: "The post is not valid.",
			Fields: []fault.Field{
				{Name: "type", Message: "must be one of: now, schedule, draft, update"},
				{Name: "date", Message: "is required"},
			},
		}},
		{title: "Channels that do not accept the post", fault: &fault.Error{
			Kind: fault.Invalid, Op: op,
			Items: []fault.Item{{
				ID: "0193b2c4-7d10-7a31-9c55-2f0e6b1a4d01", Kind: "sandbox", Name: "Acme",
				Message: "The text is too long.",
			}},
		}},
		{title: "A plan limit", fault: &fault.Error{
			Kind: fault.Quota, Op: op, Limit: &fault.Limit{Name: "posts", Current: 30, Allowed: 30},
		}},
		{title: "Too many requests", fault: &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: 12 * time.Second}},
	}
	var out []errorBody
	for _, x := range examples {
		raw, err := json.Marshal(problem.Of(x.fault, billing))
		if err != nil {
			return nil, err
		}
		text, err := indent(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, errorBody{Title: x.title, JSON: text})
	}
	return out, nil
}
