package boot

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/clock"
	"crier/platform/telemetry"
	"crier/publishing"
	"crier/publishing/scheduler"
)

// figures provides the metrics and handlers of the private listener.
type figures struct{ *App }

// serveMetrics listens on METRICS_LISTEN, if it is set.
func (a figures) serveMetrics(ctx context.Context) error {
	if a.cfg.Telemetry.Listen == "" {
		return nil
	}
	ln, err := listen(ctx, a.cfg.Telemetry.Listen, "METRICS_LISTEN", "METRICS_LISTEN")
	if err != nil {
		return err
	}
	queues := telemetry.Route{Pattern: "GET /monitor/queue/{name}", Handler: http.HandlerFunc(a.serveQueue)}
	a.private = telemetry.Serve(ln, a.registry, a.health, a.log, queues)
	return nil
}

func (a figures) stopMetrics(ctx context.Context) error {
	if a.private == nil {
		return nil
	}
	return a.private.Stop(ctx)
}

// serveQueue serves GET /monitor/queue/{name} on the private listener, even in a process without
// the edge role. It responds with 503 until the services are open.
func (a figures) serveQueue(w http.ResponseWriter, r *http.Request) {
	server := a.queues.Load()
	if server == nil {
		http.Error(w, "The service is starting.", http.StatusServiceUnavailable)
		return
	}
	server.ServeQueue(w, r)
}

// queue implements monitor.Queue. It reads statistics across all organizations over a separate
// connection, so that these reads do not use the scheduler's connections.
type queue struct {
	*scheduler.Queue
	stats *scheduler.Queue
}

func (q queue) QueueStats(ctx context.Context, name string) (publishing.QueueStats, error) {
	return q.stats.QueueStats(ctx, name)
}

// registerMetrics registers the metrics of packages that do not use Prometheus themselves. The
// worker and the edge register their own metrics, and registerJob registers the jobs' metrics.
func (a figures) registerMetrics(context.Context) error {
	for _, c := range a.counters() {
		opts := prometheus.CounterOpts{Name: c.name, Help: c.help}
		counter := prometheus.NewCounterFunc(opts, func() float64 { return float64(c.read()) })
		if err := a.registry.Register(counter); err != nil {
			return err
		}
	}
	for _, g := range a.gauges() {
		opts := prometheus.GaugeOpts{Name: g.name, Help: g.help}
		gauge := prometheus.NewGaugeFunc(opts, func() float64 { return float64(g.read()) })
		if err := a.registry.Register(gauge); err != nil {
			return err
		}
	}
	return nil
}

// metric is a counter or a gauge. read is called for each scrape.
type metric struct {
	name, help string
	read       func() int64
}

func (a figures) counters() []metric {
	return []metric{
		{
			name: "crier_admissions_moved_total", read: a.actors.Moved,
			help: "Requests whose organization had moved to another process.",
		},
		{
			name: "crier_admissions_alone_total", read: a.actors.LocalAdmissions,
			help: "Requests that this process counted in its own window because the actor could not be reached.",
		},
		{
			name: "crier_admissions_unanswered_total", read: a.actors.Unanswered,
			help: "Requests whose organization's actor did not respond in time.",
		},
		{
			name: "crier_admissions_busy_total", read: a.actors.Busy,
			help: "Requests refused because too many requests of their organization were waiting.",
		},
		{
			name: "crier_publish_set_aside_total", read: a.sender.SetAsides,
			help: "Posts and channels that were set aside for a while because the database refused to change their rows.",
		},
		{
			name: "crier_series_written_total", read: a.sender.OccurrencesWritten,
			help: "Occurrences of repeated posts that were written after the previous one ended.",
		},
		{
			name: "crier_series_set_aside_total", read: a.sender.SeriesSetAside,
			help: "Repeated posts whose next occurrence could not be written and was postponed.",
		},
		{
			name: "crier_passwords_hashed_total", read: a.Accounts.Hashed,
			help: "Passwords that were hashed or compared. Each takes about 30 ms of one core.",
		},
		{
			name: "crier_pruned_rows_total", read: a.pruned.Load,
			help: "Rows that were deleted because their retention period had ended.",
		},
		{
			name: "crier_pictures_made_total", read: func() int64 { return a.pictures.Stats().Made },
			help: "Smaller pictures that were made for platforms.",
		},
		{
			name: "crier_pictures_failed_total", read: func() int64 { return a.pictures.Stats().Failed },
			help: "Pictures given up because they cannot be made or were tried too often.",
		},
		{
			name: "crier_pictures_returned_total", read: func() int64 { return a.pictures.Stats().Returned },
			help: "Failed attempts to make a picture that will be repeated.",
		},
	}
}

func (a figures) gauges() []metric {
	sinceHeartbeat := func() time.Duration { return clock.System{}.Now().Sub(a.member.LastHeartbeat()) }
	return []metric{
		{
			name: "crier_actors_awake", read: func() int64 { return int64(a.actors.ActorCount()) },
			help: "Organizations with an actor in this process.",
		},
		{
			name: "crier_cluster_shards", read: func() int64 { return int64(len(a.owners.Lease().Shards)) },
			help: "Shards that this process owns, of 256.",
		},
		{
			name: "crier_cluster_members", read: func() int64 { return int64(a.owners.LiveCount()) },
			help: "Live processes, including this one.",
		},
		{
			name: "crier_cluster_heartbeat_age_seconds", read: func() int64 { return seconds(sinceHeartbeat()) },
			help: "Time since this process renewed its lease.",
		},
		{
			name: "crier_incident_events_waiting", read: a.notifier.Waiting,
			help: "Events in the database that no notification counts yet, at most 100000; read every 5 seconds.",
		},
		{
			name: "crier_incident_events_age_seconds", read: a.notifier.OldestSeconds,
			help: "Age of the oldest event that no notification counts yet, 0 for none; read every 5 seconds.",
		},
		{
			name: "crier_pictures_waiting", read: func() int64 { return int64(a.pictures.Stats().Waiting) },
			help: "Pictures waiting in the memory of this process.",
		},
		{
			name: "crier_pictures_busy_seconds", read: func() int64 { return seconds(a.pictures.Stats().Busy) },
			help: "Time spent on the current picture so far, 0 for none.",
		},
		{
			name: "crier_pictures_search_age_seconds",
			read: func() int64 { return seconds(a.pictures.Stats().Searched) },
			help: "Time since the database was last searched for pending pictures.",
		},
	}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
