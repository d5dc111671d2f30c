package monitor

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
	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/platform/secret"
	"crier/publishing"
)

// Queue provides statistics of the publishing queue.
type Queue interface {
	// QueueStats returns a queue's statistics across all organizations, or NotFound if no queue has
	// that name.
	QueueStats(ctx context.Context, queue string) (publishing.QueueStats, error)
}

// QueueResponse holds a queue's statistics. If a post is overdue, Status is error and the HTTP
// status is 503.
type QueueResponse struct {
	Status        string  `json:"status" enum:"success,error"`
	Message       string  `json:"message"`
	Due           int     `json:"due" doc:"Number of posts that could be published now."`
	Overdue       int     `json:"overdue" doc:"Number of posts that have been due for more than 30 seconds."`
	OldestSeconds float64 `json:"oldestSeconds" doc:"How long the oldest due post has been due, in seconds."`
	Waiting       int     `json:"waiting" doc:"Number of due posts that are waiting for another post on the same channel, for the end of a back-off, or for the interval between late posts."`
	Held          int     `json:"held" doc:"Number of due posts that are paused or whose channel must be reconnected."`
	Publishing    int     `json:"publishing" doc:"Number of posts that are being sent."`
	Unknown       int     `json:"unknown" doc:"Number of posts whose outcome is not known yet."`
	Next          *string `json:"next,omitempty" format:"date-time" doc:"When the next post is due. Set only for the queue named publish."`
}

// headerMonitor carries the operator's token on the public listener.
const headerMonitor = "X-Monitor-Token"

// QueueStats returns the endpoint that gets a queue's statistics for the operator. The endpoint
// returns Forbidden without MONITOR_TOKEN, and NotFound for an unknown queue.
func (a *API) QueueStats() route.Endpoint {
	d := route.Describe("Service", "Get queue statistics", 403, 404)
	d.Description = "Only for the operator. The request must contain MONITOR_TOKEN. METRICS_LISTEN serves the same " +
		"data without a token."
	text := &huma.Schema{Type: huma.TypeString}
	d.Parameters = []*huma.Param{
		{
			Name: "name", In: "path", Required: true, Schema: text,
			Description: "publish for the whole queue, or the id of a platform.",
		},
		{
			Name: headerMonitor, In: "header", Required: true, Schema: text,
			Description: "The instance's MONITOR_TOKEN.",
		},
	}
	return route.Raw(d, a.queue, route.Answer[QueueResponse](http.StatusOK, "No post is overdue."),
		route.Answer[QueueResponse](http.StatusServiceUnavailable, "Posts are overdue."))
}

// queue serves GET /monitor/queue/{name} on the public listener. It returns Forbidden unless the
// request carries MONITOR_TOKEN.
func (a *API) queue(c *fiber.Ctx) error {
	if !secret.Equal(c.Get(headerMonitor), a.deps.MonitorToken) {
		return fault.New(fault.Forbidden, "monitor.queue",
			"Only the operator may see this. Send "+headerMonitor+", or use METRICS_LISTEN.")
	}
	out, err := a.queueAnswer(c.UserContext(), c.Params("name"))
	if err != nil {
		return err
	}
	return c.Status(out.status()).JSON(out)
}

// ServeQueue serves GET /monitor/queue/{name} on the private listener. It requires no token.
func (a *API) ServeQueue(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), a.deps.Timeout)
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
			"the private listener cannot send the statistics of a queue", "error", err)
	}
}

func (q QueueResponse) status() int {
	if q.Status == queueHealthy {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

const queueHealthy, queueLate = "success", "error"

// queueAnswer returns a queue's statistics, or NotFound if no queue has that name.
func (a *API) queueAnswer(ctx context.Context, name string) (QueueResponse, error) {
	f, err := a.deps.Queue.QueueStats(ctx, name)
	if err != nil {
		return QueueResponse{}, err
	}
	out := QueueResponse{
		Status: queueHealthy, Due: f.Due, Overdue: f.Overdue, OldestSeconds: f.Oldest.Seconds(),
		Waiting: f.Waiting, Held: f.Held, Publishing: f.Publishing, Unknown: f.Unknown,
	}
	out.Message = fmt.Sprintf("Queue %s is healthy: %d due, %d waiting, %d publishing, %d unknown, %d held.",
		name, f.Due, f.Waiting, f.Publishing, f.Unknown, f.Held)
	if f.Next != nil {
		next := record.FormatTime(*f.Next)
		out.Next = &next
	}
	if !f.Healthy() {
		out.Status = queueLate
		out.Message = fmt.Sprintf("Queue %s has %d overdue posts; the oldest has been due for %s.",
			name, f.Overdue, f.Oldest.Round(time.Second))
	}
	return out, nil
}
