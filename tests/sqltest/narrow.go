package sqltest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"crier/platform/pg"
)

var (
	paramForm = regexp.MustCompile(`\(InitPlan \d+\)\.col1|\$\d+`)
	// policyForm matches the conditions by which a policy looks up the post or the part of a row.
	policyForm = regexp.MustCompile(`^\(?\(id = (\w+\.)?(post_id|part_id)\)`)
)

// shape returns the nodes of a plan with their indexes and conditions. It leaves out what belongs
// to the policies and is not executed: values from settings, and look-ups of posts and parts.
func (s Step) shape(depth int) string {
	if s.Kind == "Result" && s.Table == "" && s.Side == "InitPlan" || s.Side == "SubPlan" && policyForm.MatchString(s.Cond) {
		return ""
	}
	line := fmt.Sprintf("%s%s %s %s %s\n", strings.Repeat(" ", depth), s.Kind, s.Table, s.Index, paramForm.ReplaceAllString(s.Cond, "$"))
	for _, x := range s.Steps {
		line += x.shape(depth + 1)
	}
	return line
}

// KeepsPlans fails the test if the policies for narrowed transactions change the plan of a
// statement in transactions that are not narrowed. The keys are names. Each statement is planned as
// pg.Tenant, with and without the policies, for any parameters and for given ones.
func KeepsPlans(t *testing.T, statements map[string]string) {
	t.Helper()
	database, owner := Open(t)
	Fill(t, owner.Config().Database)
	Vacuum(t, owner)
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
			for name, sql := range statements {
				out[name+" "+mode] = Plan(t, c.Conn(), prefix+name+mode, sql).shape(0)
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
