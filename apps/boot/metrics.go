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

// serveQueue answers for the queues once the services are there, also in a process without the role edge.
func (a *App) serveQueue(w http.ResponseWriter, r *http.Request) {
	server := a.queues.Load()
	if server == nil {
		http.Error(w, "The service is starting.", http.StatusServiceUnavailable)
		return
	}
	server.ServeQueue(w, r)
}

// queue is what the edge asks about the queues. Figures of all organizations are read over a connection that nothing else
// uses, so that asking for them, however often, takes none from the scheduler.
type queue struct {
	*publishingservice.Posts
	figures *publishingservice.Posts
}

// Figures returns how a queue stands over all organizations; NotFound when there is none of that name.
func (q queue) Figures(ctx context.Context, name string) (publishing.Figures, error) {
	return q.figures.Figures(ctx, name)
}

// openFigures makes the pools that figures are read from. Only that of the role clock is used, and it has one connection.
func (a *App) openFigures(ctx context.Context) (err error) {
	cfg := a.cfg.Postgres
	cfg.MaxConns = pg.FewestConns
	a.figures, err = pg.Open(context.WithoutCancel(ctx), cfg)
	return err
}

// observe registers what an operator sees of the actors and of the processes' share of the work.
func (a *App) observe() error {
	counters := map[string]struct {
		help string
		read func() int64
	}{
		"crier_admissions_moved_total": {
			"Requests whose organization was found to live in another process by now.",
			a.actors.Moved,
		},
		"crier_admissions_alone_total": {
			"Requests that this process admitted by itself because the organization's actor could not be reached.",
			a.actors.LocalAdmissions,
		},
		"crier_admissions_unanswered_total": {
			"Requests that waited for their organization's actor in vain.",
			a.actors.Unanswered,
		},
		"crier_admissions_busy_total": {
			"Requests refused because too many of their organization waited.",
			a.actors.Busy,
		},
		"crier_publish_set_aside_total": {
			"Posts and channels that were left out for a while because the database refused their rows.",
			a.sender.SetAsides,
		},
		"crier_series_written_total": {
			"Occurrences of repeated posts that were written when the one before had ended.",
			a.sender.OccurrencesWritten,
		},
		"crier_series_set_aside_total": {
			"How often a repeated post could not be continued and was left for later.",
			a.sender.SeriesSetAside,
		},
		"crier_pruned_rows_total": {
			"Rows that were kept for long enough and deleted.",
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
		if err := a.registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: c.help}, func() float64 { return float64(c.read()) })); err != nil {
			return err
		}
	}
	gauges := map[string]struct {
		help string
		read func() int
	}{
		"crier_actors_awake":                  {"Organizations with a living actor in this process.", a.actors.ActorCount},
		"crier_cluster_shards":                {"Shards of the organizations that this process schedules, of 256.", func() int { return len(a.member.Lease().Shards) }},
		"crier_cluster_members":               {"Living processes that this one sees, itself among them.", a.member.LiveCount},
		"crier_cluster_heartbeat_age_seconds": {"How long ago this process renewed its lease.", func() int { return int(clock.System{}.Now().Sub(a.member.LastHeartbeat()).Seconds()) }},
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
		if err := a.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: g.help}, func() float64 { return float64(g.read()) })); err != nil {
			return err
		}
	}
	return nil
}
