package publishing_test

import (
	"testing"
	"time"

	"crier/publishing"
)

func TestNotification_IsOver(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, time.March, 10, 12, 0, 0, 0, time.UTC)
	yesterday, pending, approved := now.Add(-20*time.Hour), publishing.AnswerPending, publishing.AnswerApproved
	recently := now.Add(time.Second - publishing.IncidentReopening)
	for name, c := range map[string]struct {
		n    publishing.Notification
		want bool
	}{
		"one that was closed":       {n: publishing.Notification{Kind: publishing.NotifyReconnect, ClosedAt: &yesterday}, want: true},
		"one that may begin again":  {n: publishing.Notification{Kind: publishing.NotifyFailed, LastAt: now, ClosedAt: &recently}, want: true},
		"a channel to be connected": {n: publishing.Notification{Kind: publishing.NotifyReconnect, LastAt: now.AddDate(-1, 0, 0)}},
		"failures of yesterday":     {n: publishing.Notification{Kind: publishing.NotifyFailed, LastAt: yesterday}},
		"failures of last week":     {n: publishing.Notification{Kind: publishing.NotifyFailed, LastAt: now.AddDate(0, 0, -7)}, want: true},
		"posts of today":            {n: publishing.Notification{Kind: publishing.NotifyPublished, CreatedAt: now.Add(-11 * time.Hour)}},
		"posts of yesterday":        {n: publishing.Notification{Kind: publishing.NotifyPublished, CreatedAt: yesterday, LastAt: now}, want: true},
		"a request that waits":      {n: publishing.Notification{Kind: publishing.NotifyApproval, Answer: &pending}},
		"an answered request":       {n: publishing.Notification{Kind: publishing.NotifyApproval, Answer: &approved}, want: true},
	} {
		if got := c.n.IsOver(now); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
