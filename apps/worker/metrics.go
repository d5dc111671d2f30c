package worker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/publishing"
	"crier/publishing/sender"
	"crier/tenancy"
)

// Metrics is what an operator sees of publishing.
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
	sweepFailures prometheus.Counter // that failed
	reg           prometheus.Registerer
}

// NewMetrics registers the worker's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		lateness:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "crier_publish_lateness_seconds", Help: "From the due time of a post to its claim.", Buckets: []float64{.05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300, 3600}}),
		overdue:    prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_publish_overdue_total", Help: "Posts claimed more than 30 s late."}),
		outcomes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "crier_publish_outcomes_total", Help: "Ends of claims, by platform and result."}, []string{"connector", "result"}),
		reconciles: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "crier_publish_reconciled_total", Help: "Looks at unknown outcomes, by result."}, []string{"result"}),
		inFlight:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "crier_publish_in_flight", Help: "Posts being sent now."}),
		waiting:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "crier_publish_queue_organizations", Help: "Organizations with something due within a minute, at the last sweep."}),
		reaped:     prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_publish_reaped_total", Help: "Claims ended because their worker was gone or too slow."}),
		missed:     prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_publish_missed_total", Help: "Posts given up because they were too late."}),
		stale:      prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_publish_stale_outcomes_total", Help: "Outcomes that came after their claim had ended."}),
		lost:       prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_publish_unstored_outcomes_total", Help: "Outcomes that the database never took."}),
	}
	m.reg = reg
	m.twice = prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_publish_twice_total", Help: "Publications that a platform has under two release ids. Any is an alarm."})
	m.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_publish_refused_outcomes_total", Help: "Outcomes that the database refused because of what they say; each is tried again every minute."})
	m.sweepFailures = prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_sweep_failures_total", Help: "Parts of sweeps that failed."})
	reg.MustRegister(m.twice, m.refused, m.sweepFailures)
	m.oldest = prometheus.NewGauge(prometheus.GaugeOpts{Name: "crier_publish_oldest_overdue_seconds", Help: "How long the oldest post that could be published has waited, at the last sweep; 0 = none."})
	reg.MustRegister(m.oldest, m.lateness, m.overdue, m.outcomes, m.reconciles, m.inFlight, m.waiting, m.reaped, m.missed, m.stale, m.lost)
	return m
}

func (m *Metrics) claimed(due, now time.Time) {
	late := max(0, now.Sub(due))
	m.lateness.Observe(late.Seconds())
	if late > publishing.OverdueAfter {
		m.overdue.Inc()
	}
}

func (m *Metrics) sending() (done func(connector string, result publishing.Result)) {
	m.inFlight.Inc()
	return func(connector string, result publishing.Result) {
		m.inFlight.Dec()
		m.outcomes.WithLabelValues(connector, string(result)).Inc()
	}
}

func (m *Metrics) reconciled(result publishing.Result) {
	m.reconciles.WithLabelValues(string(result)).Inc()
}

func (m *Metrics) maintained(x sender.Maintained) {
	m.missed.Add(float64(x.Expired))
	m.reaped.Add(float64(x.Reaped))
}

// registerGauges registers what is read from a worker when somebody asks.
func (m *Metrics) registerGauges(w *Worker) {
	for _, p := range w.loopTimers() {
		labels := prometheus.Labels{"loop": p.name}
		m.reg.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "crier_loop_busy_seconds", ConstLabels: labels,
				Help: "How long the loop has been at the piece of work that it does now; 0 = it waits for work."}, func() float64 { return p.age().Seconds() }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "crier_loop_idle_seconds", ConstLabels: labels,
				Help: "How long ago the loop ended its last piece of work."}, func() float64 { return p.idle().Seconds() }))
	}
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "crier_publish_finish_backlog", Help: "Outcomes that wait to be stored."},
		func() float64 { return float64(w.finish.Len()) }))
}

// queued takes what a sweep found: when each organization has something that a free channel may publish.
func (m *Metrics) queued(next map[tenancy.OrgID]time.Time, now time.Time) {
	m.waiting.Set(float64(len(next)))
	oldest := time.Duration(0)
	for _, at := range next {
		oldest = max(oldest, now.Sub(at))
	}
	m.oldest.Set(oldest.Seconds())
}
