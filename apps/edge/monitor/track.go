package monitor

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"

	"crier/apps/edge/route"
	"crier/platform/fault"
)

// cookieTrack identifies a browser across the events that it reports.
const cookieTrack = "track"

// TrackedKinds lists the kinds of events that browsers report. The API identifies a kind by its
// index in this list.
var TrackedKinds = []string{
	"view_content", "complete_registration", "initiate_checkout", "start_trial", "purchase",
}

// TrackRequest is the body of POST /public/t and POST /user/t.
type TrackRequest struct {
	Kind int `json:"tt" minimum:"0" maximum:"4" doc:"0: view, 1: registration, 2: checkout started, 3: trial started, 4: purchase."`
	// Click and Additional are ignored. They accept any value, because clients of other services
	// send them.
	Click      any `json:"fbclid,omitempty" doc:"Ignored."`
	Additional any `json:"additional,omitempty" doc:"Ignored."`
}

// TrackResponse holds the browser's name.
type TrackResponse struct {
	Track string `json:"track" doc:"A random id for this browser, also set in the cookie track."`
}

type trackInput struct {
	Track string `cookie:"track" doc:"The id from an earlier call in the same browser."`
	Body  TrackRequest
}

type trackOutput struct {
	SetCookie string `header:"Set-Cookie"`
	Body      TrackResponse
}

// Track returns the endpoint that lets a page count an event. Nothing is stored or sent elsewhere;
// the instance has a metric that counts the events of each kind.
func (a *API) Track() route.Endpoint {
	d := route.Describe("Tracking", "Count an event on a page", 400, 413, 415)
	d.Description = "The event is only counted, by kind; nothing in the request is stored or sent anywhere. On " +
		"/public/t, a body of type text/plain is parsed as JSON, so that pages can use navigator.sendBeacon."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.track)
}

// trackForm matches the output of rand.Text, and longer names that a client may have kept.
var trackForm = regexp.MustCompile(`^[A-Z2-7]{26,64}$`)

func (a *API) track(_ context.Context, in *trackInput) (*trackOutput, error) {
	// huma has already checked the kind, but indexing must not depend on that check.
	if in.Body.Kind < 0 || in.Body.Kind >= len(TrackedKinds) {
		return nil, fault.New(fault.Invalid, "monitor.track", "There is no such kind of event.")
	}
	a.deps.Tracked(TrackedKinds[in.Body.Kind])
	name := in.Track
	if !trackForm.MatchString(name) {
		name = rand.Text()
	}
	return &trackOutput{SetCookie: a.deps.Cookies.New(cookieTrack, name).String(), Body: TrackResponse{Track: name}}, nil
}
