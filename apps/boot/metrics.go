package boot

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/telemetry"
	"crier/publishing"
	publishingservice "crier/publishing/service"
)

// serveMetrics listens on METRICS_LISTEN, if it is set.
func (a *App) serveMetrics(ctx context.Context) error {
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

func (a *App) stopMetrics(ctx context.Context) error {
	if a.private == nil {
		return nil
	}
	return a.private.Stop(ctx)
}

// serveQueue answers GET /monitor/queue/{name} of the private listener, also in a process without the role edge. It is
// 503 until the services are open.
func (a *App) serveQueue(w http.ResponseWriter, r *http.Request) {
	server := a.queues.Load()
	if server == nil {
		http.Error(w, "The service is starting.", http.StatusServiceUnavailable)
		return
	}
	server.ServeQueue(w, r)
}

// queue implements appapi.Queue. It reads the statistics of all organizations over a connection of its own, so that
// such requests take no connection from the scheduler.
type queue struct {
	*publishingservice.Posts
	stats *publishingservice.Posts
}

// QueueStats returns the statistics of a queue over all organizations, and NotFound when there is none of that name.
func (q queue) QueueStats(ctx context.Context, name string) (publishing.QueueStats, error) {
	return q.stats.QueueStats(ctx, name)
}

// openQueueDB opens the pools for the statistics of queues. Only the pool of the role clock is used. It has one
// connection.
func (a *App) openQueueDB(ctx context.Context) (err error) {
	cfg := a.cfg.Postgres
	cfg.MaxConns = pg.FewestConns
	a.queueDB, err = pg.Open(context.WithoutCancel(ctx), cfg)
	return err
}

// registerMetrics registers the metrics of the actors, the cluster, the sender and the pictures.
func (a *App) registerMetrics() error {
	counters := map[string]struct {
		help string
		read func() int64
	}{
		"crier_admissions_moved_total": {
			"Requests whose organization had moved to another process.",
			a.actors.Moved,
		},
		"crier_admissions_alone_total": {
			"Requests that this process admitted by its own window because the actor could not be reached.",
			a.actors.LocalAdmissions,
		},
		"crier_admissions_unanswered_total": {
			"Requests whose organization's actor did not answer in time.",
			a.actors.Unanswered,
		},
		"crier_admissions_busy_total": {
			"Requests refused because too many requests of their organization were waiting.",
			a.actors.Busy,
		},
		"crier_publish_set_aside_total": {
			"Posts and channels that were set aside for a while because the database refused to change their rows.",
			a.sender.SetAsides,
		},
		"crier_series_written_total": {
			"Occurrences of repeated posts that were written after the end of the one before.",
			a.sender.OccurrencesWritten,
		},
		"crier_series_set_aside_total": {
			"Repeated posts whose next occurrence could not be written and was left for later.",
			a.sender.SeriesSetAside,
		},
		"crier_pruned_rows_total": {
			"Rows that were deleted because their retention was over.",
			a.pruned.Load,
		},
		"crier_pictures_made_total": {
			"Smaller pictures that were made for platforms.",
			func() int64 { return a.pictures.Stats().Made },
		},
		"crier_pictures_failed_total": {
			"Pictures that cannot be made, or were tried too often.",
			func() int64 { return a.pictures.Stats().Failed },
		},
		"crier_pictures_returned_total": {
			"Attempts at a picture that failed and are repeated.",
			func() int64 { return a.pictures.Stats().Returned },
		},
	}
	for name, c := range counters {
		opts := prometheus.CounterOpts{Name: name, Help: c.help}
		counter := prometheus.NewCounterFunc(opts, func() float64 { return float64(c.read()) })
		if err := a.registry.Register(counter); err != nil {
			return err
		}
	}
	gauges := map[string]struct {
		help string
		read func() int
	}{
		"crier_actors_awake": {"Organizations with an actor in this process.", a.actors.ActorCount},
		"crier_cluster_shards": {
			"Shards that this process owns, of 256.",
			func() int { return len(a.member.Lease().Shards) },
		},
		"crier_cluster_members": {"Live processes, this one included.", a.member.LiveCount},
		"crier_cluster_heartbeat_age_seconds": {
			"Time since this process renewed its lease.",
			func() int { return int(clock.System{}.Now().Sub(a.member.LastHeartbeat()).Seconds()) },
		},
		"crier_pictures_waiting": {
			"Pictures that wait in the memory of this process.",
			func() int { return a.pictures.Stats().Waiting },
		},
		"crier_pictures_busy_seconds": {
			"Age of the picture that is being made, 0 for none.",
			func() int { return int(a.pictures.Stats().Busy.Seconds()) },
		},
		"crier_pictures_search_age_seconds": {
			"Time since the database was last searched for pending pictures.",
			func() int { return int(a.pictures.Stats().Searched.Seconds()) },
		},
	}
	for name, g := range gauges {
		opts := prometheus.GaugeOpts{Name: name, Help: g.help}
		gauge := prometheus.NewGaugeFunc(opts, func() float64 { return float64(g.read()) })
		if err := a.registry.Register(gauge); err != nil {
			return err
		}
	}
	return nil
}
