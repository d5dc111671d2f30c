package store

import (
	"testing"

	"crier/tests/sqltest"
)

func TestPlan_NarrowPoliciesChangeNoPlan(t *testing.T) {
	t.Parallel()
	sqltest.KeepsPlans(t, map[string]string{
		"NotificationPage": notificationPage, "NotificationCount": notificationCount, "NotificationsUnread": notificationsUnread,
		"NotificationsRead": notificationsRead, "NotificationsReadUntil": notificationsReadUntil, "ActivityTime": activityTime,
		"NotificationsTrim": notificationsTrim, "NotificationInsert": notificationInsert,
	})
}
