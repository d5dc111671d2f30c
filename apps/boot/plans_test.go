package boot

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crier/tenancy"
)

func TestOpenPlans_ErrorNamesVariableAndFault(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, c := range map[string]struct{ file, want string }{
		"no file":       {filepath.Join(folder, "absent.json"), "no such file"},
		"a folder":      {folder, "is a directory"},
		"no JSON":       {write("words.json", "channels: 3"), "the JSON cannot be read"},
		"a wrong plan":  {write("wrong.json", `{"default":"FREE","plans":{"FREE":{"channels":1}}}`), "plans.FREE.members is missing"},
		"a large file":  {write("large.json", strings.Repeat(" ", maxPlansFile+1)), "larger than 1 MB"},
		"a right plan":  {write("right.json", `{"default":"FREE","plans":{"FREE":{"channels":1,"posts":2,"webhooks":3,"members":4}}}`), ""},
		"no plans file": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &App{cfg: Config{PlansFile: c.file}, log: slog.New(slog.DiscardHandler)}
			err := a.openPlans(t.Context())
			if c.want == "" {
				if err != nil || a.plans == nil {
					t.Fatalf("got %v, want plans", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "PLANS_FILE: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a fault of PLANS_FILE with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), folder) {
				t.Errorf("the fault %v has the value of the variable", err)
			}
		})
	}
}

// Without a plan file, Limits does not query the database, so the test needs no transaction.
func TestPlans_WithoutFileNothingIsLimited(t *testing.T) {
	t.Parallel()
	a := &App{log: slog.New(slog.DiscardHandler)}
	if err := a.openPlans(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := a.plans.Limits(t.Context(), nil, tenancy.OrgID{})
	want := tenancy.NoLimits()
	want.Plan = "ULTIMATE"
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
