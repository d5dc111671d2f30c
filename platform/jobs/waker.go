package jobs

import (
	"context"
	"time"

	"crier/platform/clock"
)

// wakeInterval is how often the waker notifies workers. A delayed task can therefore begin up to
// wakeInterval late, or even later if River's leader is slow. Normally, the leader makes tasks
// available up to 5 s early.
const wakeInterval = 5 * time.Second

// notifyDue sends River's notification for each queue that has a task ready to run. Its conditions
// match the index that River uses to fetch tasks. All tasks have priority 1.
const notifyDue = `-- jobs.NotifyDue
select pg_notify('jobs.river_insert', json_build_object('queue', q)::text) from unnest($1::text[]) q
where (select true from jobs.river_job
  where state = 'available' and queue = q and priority = 1 and scheduled_at <= now() limit 1)`

// startWaker starts a goroutine that notifies workers of due tasks until Stop is called. River
// itself sends notifications only for tasks that can begin immediately. Without the waker, delayed
// tasks and retries would begin only when their queue is next polled.
func (r *Runner) startWaker(ctx context.Context) {
	ctx, r.stopWaker = context.WithCancel(context.WithoutCancel(ctx))
	if len(r.handlers) == 0 {
		return
	}
	var queues []string
	for kind := range r.handlers {
		queues = append(queues, kind, kind+laterSuffix)
	}
	r.waker.Go(func() {
		for clock.Sleep(ctx, wakeInterval) == nil {
			r.wake(ctx, queues)
		}
	})
}

func (r *Runner) wake(ctx context.Context, queues []string) {
	ctx, cancel := context.WithTimeout(ctx, wakeInterval)
	defer cancel()
	if _, err := r.pool.Exec(ctx, notifyDue, queues); err != nil && !r.stopping.Load() {
		r.log.WarnContext(ctx, "the task workers were not notified; they poll their queues every 30 s", "error", err)
	}
}
