package contract

import (
	"net/http"
	"strings"
	"testing"

	"crier/tests/call"
)

// The types below hold the service's responses as the tests read them. A member that is null or
// absent is zero. The shape tests compare the names of all members with the contract.

// created is one entry in the response to POST /posts.
type created struct {
	PostID      string
	Integration string
}

// record is a post, alone or in a list.
type record struct {
	ID             string
	Group          string
	State          string
	Status         string
	Date           string
	PublishDate    string
	ActualDate     string
	Content        string
	ReleaseID      string
	ReleaseURL     string
	Error          string
	ErrorCode      string
	CreationMethod string
	IntervalInDays int
	Settings       m
	Posts          []postEntry
	Media          []medium
	Timeline       []event
}

// postEntry is the entry of a post in its record.
type postEntry struct {
	Error          string
	ErrorCode      string
	OutcomeUnknown bool
	Value          []value
}

// value is one part of a post.
type value struct {
	ID          string
	Content     string
	ContentType string
	Delay       int
}

// event is one event of a timeline.
type event struct {
	Event, Node, Reason string
	By                  struct{ Kind, ID, Name string }
}

// values returns the parts of a post.
func (r record) values() []value { return r.Posts[0].Value }

// contents returns the contents of the parts, separated by " | ".
func (r record) contents() string {
	var out []string
	for _, v := range r.values() {
		out = append(out, v.Content)
	}
	return strings.Join(out, " | ")
}

// events returns the names of the events in the timeline.
func (r record) events() (out []string) {
	for _, e := range r.Timeline {
		out = append(out, e.Event)
	}
	return out
}

// medium is an uploaded file, in a response or in a request.
type medium struct {
	ID           string  `json:"id"`
	URL          string  `json:"url"`
	Path         string  `json:"path"`
	Name         string  `json:"name"`
	OriginalName string  `json:"originalName,omitempty"`
	Type         string  `json:"type,omitempty"`
	Thumbnail    *string `json:"thumbnail"`
	Alt          *string `json:"alt"`
}

// channelRecord is a connected channel.
type channelRecord struct {
	ID            string
	Name          string
	Identifier    string
	InternalID    string
	Timezone      string
	RefreshNeeded bool
}

// next is the response to a request that starts a connect.
type next struct{ URL string }

// named is the response of a route that deletes, or a post after a change of its status.
type named struct{ ID, State string }

// paused is the response to a pause.
type paused struct {
	Paused                 bool
	Held, InFlight, Missed int
	Posts                  []struct {
		ID, Content string
		Integration struct{ ID string }
	}
}

// queue holds the statistics of a queue.
type queue struct {
	Status, Message string
	Due, Held       int
	Next            string
}

// refused is the body of an error.
type refused struct {
	StatusCode int
	Msg        string
	Message    any // a sentence or a list
	RetryAfter int64
	Errors     []struct{ Integration, Provider, Name, Message string }
}

// answer is the response to a request.
type answer struct{ call.Answer }

// want ends the test unless the response has this status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.Status != status {
		t.Fatalf("the answer is %v, want the status %d", a, status)
	}
	return a
}

// read returns the JSON body of a response as a T.
func read[T any](t *testing.T, a answer) T {
	t.Helper()
	return decode[T](t, a.raw())
}

// refusal checks the body of an error response with this status and returns its sentence.
func (a answer) refusal(t *testing.T, status int) string {
	t.Helper()
	body := read[refused](t, a.want(t, status))
	if body.StatusCode != status || len(strings.TrimSpace(body.Msg)) < 8 || body.Message == nil || body.Message == "" {
		t.Fatalf("the answer is %v, want the body of an error with the status %d and a sentence", a, status)
	}
	return body.Msg
}

// post returns the record of a post.
func (o org) post(t *testing.T, id string) record {
	t.Helper()
	return read[record](t, o.get(t, "/posts/"+id).want(t, http.StatusOK))
}

// created sends a body to POST /posts and returns the entries in the response.
func (o org) created(t *testing.T, body any, headers ...string) []created {
	t.Helper()
	made := read[[]created](t, o.do(t, http.MethodPost, "/posts", body, headers...).want(t, http.StatusCreated))
	if len(made) == 0 {
		t.Fatal("POST /posts answered with no entry, want one for each channel")
	}
	return made
}

// create sends a body to POST /posts and returns the id of the first post.
func (o org) create(t *testing.T, body any, headers ...string) string {
	t.Helper()
	return o.created(t, body, headers...)[0].PostID
}

// changeStatus sends a body to PUT /posts/{id}/status.
func (o org) changeStatus(t *testing.T, id string, body any) answer {
	t.Helper()
	return o.do(t, http.MethodPut, "/posts/"+id+"/status", body)
}

// list returns the records in a list of posts.
func (o org) list(t *testing.T, query string) []record {
	t.Helper()
	return read[[]record](t, o.get(t, "/posts?"+query).want(t, http.StatusOK))
}

// deletes deletes the resource at the path plus the id, and ends the test unless the response has
// only that id.
func (o org) deletes(t *testing.T, path, id string) {
	t.Helper()
	a := o.do(t, http.MethodDelete, path+id, nil).want(t, http.StatusOK)
	members(t, a.raw(), "id")
	if got := read[named](t, a).ID; got != id {
		t.Fatalf("DELETE %s answered with the id %q, want %q", path+id, got, id)
	}
}

// channels returns the connected channels.
func (o org) channels(t *testing.T) []channelRecord {
	t.Helper()
	return read[[]channelRecord](t, o.get(t, "/integrations").want(t, http.StatusOK))
}

// stored uploads a file and returns its record.
func (o org) stored(t *testing.T, filename string, data []byte) medium {
	t.Helper()
	return read[medium](t, o.upload(t, filename, data).want(t, http.StatusCreated))
}
