package arch

import (
	"slices"
	"testing"
)

// TestPlan_HasNoUnusedEntries: an entry for a folder or library that does not exist would check
// nothing.
func TestPlan_HasNoUnusedEntries(t *testing.T) {
	t.Parallel()
	all, err := loadTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range unused(all) {
		t.Errorf("an entry of the plan is not needed: %s", line)
	}
}

func TestUnused_ReportsEntries(t *testing.T) {
	t.Parallel()
	found := unused(tree{})
	for _, want := range []string{
		"the import plan names apps/edge: no such folder",
		"github.com/gofiber/ is not imported from apps/edge",
		"crier/publishing/connector/conformance is imported by no test",
		"a forbidden call names platform/clock: no such folder",
		"the root has no entry apps/",
	} {
		if !slices.Contains(found, want) {
			t.Errorf("got no message %q for an empty tree", want)
		}
	}
}

// unused returns a message for each folder and library that is in the tables but not in the tree.
func unused(t tree) (out []string) {
	there := func(folder string) bool {
		return slices.ContainsFunc(t.files, func(f file) bool { return inFolder(f.dir(), folder) })
	}
	for _, a := range layers {
		for _, folder := range slices.Concat([]string{a.from}, a.to, a.root) {
			if !there(folder) {
				out = append(out, "the import plan names "+folder+": no such folder")
			}
		}
	}
	for _, restrictions := range [][]restriction{restricted, vendors} {
		for _, d := range restrictions {
			out = append(out, unusedRestriction(t, restrictions, d)...)
		}
	}
	for _, b := range bans {
		for _, folder := range b.from {
			if !there(folder) {
				out = append(out, "a forbidden call names "+folder+": no such folder")
			}
		}
	}
	for _, name := range topLevel {
		if !slices.Contains(t.top, name) {
			out = append(out, "the root has no entry "+name)
		}
	}
	return out
}

// unusedRestriction reports the folders of d that have no file with the import. If d has no
// folders, a test must have the import.
func unusedRestriction(t tree, restrictions []restriction, d restriction) (out []string) {
	comes := func(test bool, folder string) bool {
		return slices.ContainsFunc(t.files, func(f file) bool {
			return f.test == test && (folder == "" || inFolder(f.dir(), folder)) && slices.ContainsFunc(f.imports, func(i imported) bool {
				at := slices.IndexFunc(restrictions, func(d restriction) bool { return matchesPath(i.path, d.path) })
				return at >= 0 && restrictions[at].path == d.path
			})
		})
	}
	for _, folder := range d.from {
		if !comes(false, folder) {
			out = append(out, d.path+" is not imported from "+folder)
		}
	}
	if len(d.from) == 0 && !comes(true, "") {
		out = append(out, d.path+" is imported by no test")
	}
	return out
}
