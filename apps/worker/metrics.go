package worker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/publishing"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// Metrics holds the metrics of one Worker. New panics if two Workers use the same Metrics.
type Metrics struct {
	lateness      prometheus.Histogram
	overdue       prometheus.Counter
	outcomes      *prometheus.CounterVec
	reconciles    *prometheus.CounterVec
	inFlight      prometheus.Gauge
	waiting       prometheus.Gauge
	reaped        prometheus.Counter
	missed        prometheus.Counter
	stale         prometheus.Counter
	lost          prometheus.Counter
	oldest        prometheus.Gauge
	twice         prometheus.Counter
	refused       prometheus.Counter
	sweepFailures prometheus.Counter
	reg           prometheus.Registerer
}

// NewMetrics returns metrics registered with reg. It panics if they are already registered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "crier_publish_lateness_seconds", Help: "Time from a post's due time to its claim.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300, 3600},
		}),
		overdue: counter("crier_publish_overdue_total", "Posts claimed more than 30 s late."),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crier_publish_outcomes_total", Help: "Ended claims, by platform and result.",
		}, []string{"connector", "result"}),
		reconciles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crier_publish_reconciled_total", Help: "Reconciliations of unknown outcomes, by result.",
		}, []string{"result"}),
		inFlight: gauge("crier_publish_in_flight", "Posts being sent now."),
		waiting: gauge("crier_publish_queue_organizations",
			"Organizations with something due within a minute, at the last sweep."),
		reaped: counter("crier_publish_reaped_total", "Claims ended because their worker was gone or too slow."),
		missed: counter("crier_publish_missed_total", "Posts given up because they were too late."),
		stale:  counter("crier_publish_stale_outcomes_total", "Outcomes that arrived after their claim had ended."),
		lost:   counter("crier_publish_unstored_outcomes_total", "Outcomes that could not be stored."),
		twice: counter("crier_publish_twice_total",
			"Publications with two release ids on their platform. Any increase is an alarm."),
		refused: counter("crier_publish_refused_outcomes_total",
			"Outcomes that the database refused because of their content; each is retried every minute."),
		sweepFailures: counter("crier_sweep_failures_total", "Sweep steps that failed."),
		oldest: gauge("crier_publish_oldest_overdue_seconds",
			"How long the oldest post that could be published has waited, at the last sweep; 0 = none."),
		reg: reg,
	}
	reg.MustRegister(m.lateness, m.overdue, m.outcomes, m.reconciles, m.inFlight, m.waiting, m.reaped, m.missed,
		m.stale, m.lost, m.twice, m.refused, m.sweepFailures, m.oldest)
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (m *Metrics) claimed(due, now time.Time) {
	late := max(0, now.Sub(due))
	m.lateness.Observe(late.Seconds())
	if late > publishing.OverdueAfter {
		m.overdue.Inc()
	}
}

func (m *Metrics) sending() (done func(connector string, result dispatch.Result)) {
	m.inFlight.Inc()
	return func(connector string, result dispatch.Result) {
		m.inFlight.Dec()
		m.outcomes.WithLabelValues(connector, string(result)).Inc()
	}
}

func (m *Metrics) reconciled(result dispatch.Result) {
	m.reconciles.WithLabelValues(string(result)).Inc()
}

func (m *Metrics) maintained(x scheduler.Maintained) {
	m.missed.Add(float64(x.Expired))
	m.reaped.Add(float64(x.Reaped))
}

// registerGauges registers the metrics that are computed from a Worker at each scrape.
func (m *Metrics) registerGauges(w *Worker) {
	computed := func(name, help string, labels prometheus.Labels, value func() float64) {
		m.reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
	}
	for name, d := range w.watchdogs() {
		labels := prometheus.Labels{"loop": name}
		computed("crier_loop_busy_seconds",
			"How long the loop has been busy with its current piece of work; 0 = it is waiting for work.",
			labels, func() float64 { return d.Busy().Seconds() })
		computed("crier_loop_idle_seconds", "Time since the loop finished its last piece of work.",
			labels, func() float64 { return d.Idle().Seconds() })
	}
	computed("crier_publish_finish_backlog", "Outcomes waiting to be stored.", nil, func() float64 {
		return float64(w.finish.Len())
	})
}

// queued records a sweep's result: the time at which each organization next has a post due on a
// free channel.
func (m *Metrics) queued(next map[tenancy.OrgID]time.Time, now time.Time) {
	m.waiting.Set(float64(len(next)))
	oldest := time.Duration(0)
	for _, at := range next {
		oldest = max(oldest, now.Sub(at))
	}
	m.oldest.Set(oldest.Seconds())
}
