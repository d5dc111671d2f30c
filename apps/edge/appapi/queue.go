package appapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/platform/secret"
	"crier/publishing"
)

func (a *API) mountQueue(t, user *route.Table) {
	channel := signedIn(operation("pause-channel", http.MethodPut, "/integrations/{id}/pause", "Channels",
		"Pause the publishing of a channel, or resume it", 400, 404, 413))
	route.JSON(user.With(jsonOnly), channel, func(ctx context.Context, in *pauseOneInput) (*pauseOutput, error) {
		return a.pause(ctx, publishing.PauseChannel, in.ID, in.Body.Paused)
	})
	customer := signedIn(operation("pause-customer", http.MethodPut, "/customers/{id}/pause", "Channels",
		"Pause the publishing of a group of channels, or resume it", 400, 404, 413))
	route.JSON(user.With(jsonOnly), customer, func(ctx context.Context, in *pauseOneInput) (*pauseOutput, error) {
		return a.pause(ctx, publishing.PauseCustomer, in.ID, in.Body.Paused)
	})
	all := signedIn(operation("pause-organization", http.MethodPut, "/settings/pause", "Settings",
		"Pause the publishing of the whole organization, or resume it; administrators only", 400, 413))
	route.JSON(user.With(jsonOnly), all, func(ctx context.Context, in *pauseAllInput) (*pauseOutput, error) {
		return a.pause(ctx, publishing.PauseOrganization, "", in.Body.Paused)
	})

	queue := operation("queue", http.MethodGet, "/monitor/queue/{name}", "Service",
		"Tell how a queue stands: publish, or a platform. Only for the operator, who knows MONITOR_TOKEN; "+
			"METRICS_LISTEN answers the same without a token", 403, 404)
	text := &huma.Schema{Type: huma.TypeString}
	queue.Parameters = []*huma.Param{
		{Name: "name", In: "path", Required: true, Schema: text,
			Description: "publish for everything, or a platform's identifier."},
		{Name: headerMonitor, In: "header", Required: true, Schema: text, Description: "The instance's MONITOR_TOKEN."},
	}
	queue = route.Answer[QueueAnswer](t, queue, http.StatusOK, "Nothing is overdue.")
	queue = route.Answer[QueueAnswer](t, queue, http.StatusServiceUnavailable, "Posts wait that should be out.")
	t.Raw(queue, a.queue)
}

// PauseRequest is the body of the routes that pause or resume publishing.
type PauseRequest struct {
	Paused bool `json:"paused" doc:"true keeps every post back, false lets them go on."`
}

type pauseOneInput struct {
	ID   string `path:"id"`
	Body PauseRequest
}

type pauseAllInput struct{ Body PauseRequest }

// HeldPost is one of the posts that a pause holds back.
type HeldPost struct {
	ID          string      `json:"id"`
	Date        string      `json:"date" format:"date-time"`
	Content     string      `json:"content"`
	Integration HeldChannel `json:"integration"`
}

// HeldChannel is the channel of a held post.
type HeldChannel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// PauseAnswer counts the posts that are held back. A channel publishes while neither it nor its group nor the
// organization is paused.
type PauseAnswer struct {
	Paused   bool       `json:"paused"`
	Held     int        `json:"held" doc:"Posts that are due already and wait."`
	InFlight int        `json:"inFlight" doc:"Posts whose call to the platform had begun: they end."`
	Missed   int        `json:"missed" doc:"Of a resume: posts that were held for too long and are given up."`
	Posts    []HeldPost `json:"posts" doc:"The first twenty that are booked, by date."`
}

type pauseOutput struct{ Body PauseAnswer }

func (a *API) pause(ctx context.Context, scope publishing.PauseScope, id string, paused bool) (*pauseOutput, error) {
	cmd := publishing.SetPause{Scope: scope, ID: id, Paused: paused}
	res, err := a.deps.Queue.Pause(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, err
	}
	out := PauseAnswer{
		Paused: res.Paused, Held: res.Held, InFlight: res.InFlight, Missed: res.Missed,
		Posts: make([]HeldPost, 0, len(res.Posts)),
	}
	for _, p := range res.Posts {
		out.Posts = append(out.Posts, HeldPost{
			ID: p.ID.String(), Date: formatTime(p.PublishDate), Content: res.Texts[p.ID],
			Integration: HeldChannel{ID: p.Channel.String(), Name: res.Channels[p.Channel]},
		})
	}
	return &pauseOutput{Body: out}, nil
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// QueueAnswer has the statistics of a queue.
type QueueAnswer struct {
	Status        string  `json:"status" enum:"success,error"`
	Message       string  `json:"message"`
	Due           int     `json:"due" doc:"Posts that could be published now."`
	Overdue       int     `json:"overdue" doc:"Of those, for more than 30 seconds."`
	OldestSeconds float64 `json:"oldestSeconds" doc:"How long the oldest of them has waited."`
	Waiting       int     `json:"waiting" doc:"Due posts that stand behind another of their channel, back off or keep a gap."`
	Held          int     `json:"held" doc:"Due posts that a pause or a channel that must be connected again keeps back."`
	Publishing    int     `json:"publishing"`
	Unknown       int     `json:"unknown" doc:"Posts whose outcome is looked up."`
	Next          *string `json:"next,omitempty" format:"date-time" doc:"When the next post is due; only for publish."`
}

// headerMonitor carries the operator's token on the public listener.
const headerMonitor = "X-Monitor-Token"

// queue answers GET /monitor/queue/{name} on the public listener. Without MONITOR_TOKEN it is Forbidden.
func (a *API) queue(c *fiber.Ctx) error {
	if !secret.Equal(c.Get(headerMonitor), a.cfg.MonitorToken) {
		return fault.New(fault.Forbidden, "appapi.queue",
			"Only the operator may ask for this: send "+headerMonitor+", or ask on METRICS_LISTEN.")
	}
	out, err := a.queueAnswer(c.UserContext(), c.Params("name"))
	if err != nil {
		return err
	}
	return c.Status(out.status()).JSON(out)
}

// ServeQueue answers GET /monitor/queue/{name} on the private listener. It requires no token.
func (a *API) ServeQueue(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Timeout)
	defer cancel()
	out, err := a.queueAnswer(ctx, r.PathValue("name"))
	body, status := any(out), out.status()
	if err != nil {
		refusal := problem.Of(err, "")
		body, status = refusal, refusal.StatusCode
	}
	w.Header().Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	w.WriteHeader(status)
	if err := errors.Join(err, json.NewEncoder(w).Encode(body)); err != nil {
		a.deps.Log.WarnContext(ctx,
			"the private listener could not answer with the statistics of a queue", "error", err)
	}
}

func (q QueueAnswer) status() int {
	if q.Status == queueHealthy {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

const queueHealthy, queueLate = "success", "error"

// queueAnswer returns the statistics of a queue, and NotFound when there is none of that name.
func (a *API) queueAnswer(ctx context.Context, name string) (QueueAnswer, error) {
	f, err := a.deps.Queue.QueueStats(ctx, name)
	if err != nil {
		return QueueAnswer{}, err
	}
	out := QueueAnswer{
		Status: queueHealthy, Due: f.Due, Overdue: f.Overdue, OldestSeconds: f.Oldest.Seconds(),
		Waiting: f.Waiting, Held: f.Held, Publishing: f.Publishing, Unknown: f.Unknown,
	}
	out.Message = fmt.Sprintf("Queue %s is healthy: %d due, %d waiting, %d publishing, %d unknown, %d held.",
		name, f.Due, f.Waiting, f.Publishing, f.Unknown, f.Held)
	if f.Next != nil {
		next := formatTime(*f.Next)
		out.Next = &next
	}
	if !f.Healthy() {
		out.Status = queueLate
		out.Message = fmt.Sprintf("Queue %s has %d posts that should be out; the oldest waits for %s.",
			name, f.Overdue, f.Oldest.Round(time.Second))
	}
	return out, nil
}
