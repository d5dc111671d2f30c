package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"crier/platform/pg"
	"crier/tests/sqltest"
)

// hotStatements are the statements that requests execute most often.
func hotStatements() map[string]string {
	return map[string]string{
		"PostInsert": insertPosts, "PartInsert": partInsert, "EventsWritten": eventsWritten, "ChannelsHold": channelsHold,
		"GroupLock": groupLock, "GroupStatus": groupStatus, "PostMove": movePosts, "MonthPosts": monthPosts,
		"ChannelsByID": channelsByID, "RootsInRange": rootsInRange, "RootsPage": rootsPage, "RootsCount": rootsCount,
		"RootByID": rootByID, "SeriesInRange": findSeriesInRange, "SeriesNamed": findSeriesByID, "PartsOf": partsOf,
		"AttachmentsOf": attachmentsOf, "FollowersOf": followersOf, "ChannelsOf": channelsOf, "EventsOf": eventsOf,
	}
}

var paramForm = regexp.MustCompile(`\(InitPlan \d+\)\.col1|\$\d+`)

// policyForm matches the conditions by which a policy looks up the post or the part of a row.
var policyForm = regexp.MustCompile(`^\(?\(id = (\w+\.)?(post_id|part_id)\)`)

// shapeOf returns the nodes of a plan with their indexes and conditions. It leaves out what belongs
// to the policies and is not executed: values from settings, and look-ups of posts and parts.
func shapeOf(s sqltest.Step, depth int) string {
	if s.Kind == "Result" && s.Table == "" && s.Side == "InitPlan" || s.Side == "SubPlan" && policyForm.MatchString(s.Cond) {
		return ""
	}
	line := fmt.Sprintf("%s%s %s %s %s\n", strings.Repeat(" ", depth), s.Kind, s.Table, s.Index, paramForm.ReplaceAllString(s.Cond, "$"))
	for _, x := range s.Steps {
		line += shapeOf(x, depth+1)
	}
	return line
}

// TestPlan_NarrowPoliciesChangeNoPlan compares the plans of transactions that are not narrowed with
// those of a database without the policies.
func TestPlan_NarrowPoliciesChangeNoPlan(t *testing.T) {
	t.Parallel()
	database, owner := sqltest.Open(t)
	sqltest.Fill(t, owner.Config().Database)
	sqltest.Vacuum(t, owner)
	plans := func(prefix string) map[string]string {
		c, err := database.Pool(pg.Tenant).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		out := map[string]string{}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			if _, err := c.Exec(t.Context(), "set plan_cache_mode = "+mode); err != nil {
				t.Fatal(err)
			}
			for name, sql := range hotStatements() {
				out[name+" "+mode] = shapeOf(sqltest.Plan(t, c.Conn(), prefix+name+mode, sql), 0)
			}
		}
		return out
	}
	with := plans("with ")
	_, err := owner.Exec(t.Context(), `do $$ declare p record; begin
		for p in select tablename from pg_policies where policyname = 'narrow' loop
			execute format('drop policy narrow on %I', p.tablename);
		end loop; end $$`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range plans("without ") {
		if with[name] != want {
			t.Errorf("%s is planned as\n%swant\n%s", name, with[name], want)
		}
	}
}
