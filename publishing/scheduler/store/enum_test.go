package store_test

import (
	"slices"
	"testing"

	"crier/platform/pg"
	"crier/publishing"
	publishingdb "crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
	"crier/tests/dbtest"
)

func TestEnums_MatchTheSchema(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	phases := []dispatch.Phase{
		dispatch.PhasePreparing, dispatch.PhaseCommitting, dispatch.PhaseDone, dispatch.PhaseFailed,
	}
	scopes := []publishing.PauseScope{
		publishing.PauseInstance, publishing.PauseOrganization, publishing.PauseCustomer, publishing.PauseChannel,
	}
	for constraint, want := range map[string][]string{
		"pause_scope_check":         publishingdb.Texts(scopes),
		"post_state_check":          publishingdb.Texts(publishing.States()),
		"publication_phase_check":   publishingdb.Texts(phases),
		"post_event_event_check":    publishingdb.Texts(publishing.EventKinds()),
		"notification_kind_check":   publishingdb.Texts(publishing.NotificationKinds()),
		"incident_event_kind_check": publishingdb.Texts(publishing.IncidentEventKinds()),
	} {
		const quoted = `
select array(select m[1] from regexp_matches(pg_get_constraintdef(oid), '''([^'']+)''', 'g') m)
from pg_constraint where conname = $1`
		var got []string
		err := db.Pool(pg.Clock).QueryRow(t.Context(), quoted, constraint).Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", constraint, got, want)
		}
	}
}

// Everything in the bell is also mailed about, so reports have the same kinds as notifications.
func TestEnums_ReportKindsMatchNotificationKinds(t *testing.T) {
	t.Parallel()
	got, want := publishingdb.Texts(tenancy.ReportKinds()), publishingdb.Texts(publishing.NotificationKinds())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("reports have the kinds %v, want %v", got, want)
	}
}
