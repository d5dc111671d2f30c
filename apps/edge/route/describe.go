package route

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// Describe returns the description of an endpoint that can reject a request with 500 or one of the
// statuses in errors. The OpenAPI document lists the endpoint under tag.
func Describe(tag, summary string, errors ...int) huma.Operation {
	return huma.Operation{Summary: summary, Tags: []string{tag}, Errors: append(errors, http.StatusInternalServerError)}
}

// Created is like Describe, but for an endpoint that responds with 201.
func Created(tag, summary string, errors ...int) huma.Operation {
	d := Describe(tag, summary, errors...)
	d.DefaultStatus = http.StatusCreated
	return d
}

// Described returns d with the given description, which gives more detail than the summary.
func Described(d huma.Operation, text string) huma.Operation {
	d.Description = text
	return d
}

// describe corrects the responses that huma generates for an operation. If the operation can return
// 400, its 422 response becomes a 400 response; otherwise, the 422 response is removed. Every
// operation that can return 500 also gets a 503 response. describe then adds the rate-limit and
// Retry-After headers.
func describe(op *huma.Operation) {
	if r, ok := op.Responses["422"]; ok {
		delete(op.Responses, "422")
		if slices.Contains(op.Errors, http.StatusBadRequest) {
			r.Description = http.StatusText(http.StatusBadRequest)
			op.Responses["400"] = r
		}
	}
	if failed := op.Responses["500"]; failed != nil && op.Responses["503"] == nil {
		unavailable := *failed
		unavailable.Description = http.StatusText(http.StatusServiceUnavailable)
		header(&unavailable, "Retry-After")
		op.Responses["503"] = &unavailable
	}
	for status, r := range op.Responses {
		if len(op.Security) > 0 && status != "401" { // requests with a valid credential are counted
			header(r, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
		}
		if status == "409" || status == "429" {
			header(r, "Retry-After")
		}
	}
}

// header adds headers to a response. Each header is a reference to one of the components returned
// by headers.
func header(r *huma.Response, names ...string) {
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	for _, name := range names {
		r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
}

// headers returns the header components to which header refers.
func headers() map[string]*huma.Param {
	out := map[string]*huma.Param{}
	for name, doc := range map[string]string{
		"X-RateLimit-Limit": "Maximum number of requests per minute. With an API key, the limit applies to the " +
			"organization; otherwise, it applies to the session.",
		"X-RateLimit-Remaining": "Number of requests left in the current minute.",
		"X-RateLimit-Reset":     "End of the current minute, as Unix time in seconds.",
		"Retry-After":           "Seconds to wait.",
	} {
		out[name] = &huma.Param{Description: doc, Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
	return out
}
