package arch

import (
	"slices"
	"testing"
)

// A line about what is not there would pass as a rule and check nothing.
func TestEveryLineOfThePlanIsUsed(t *testing.T) {
	t.Parallel()
	all, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range unused(all) {
		t.Error(line)
	}
}

func TestUnusedLinesAreFound(t *testing.T) {
	t.Parallel()
	found := unused(tree{})
	for _, want := range []string{
		"the import plan names apps/edge: no such folder",
		"github.com/gofiber/ is not imported from apps/edge",
		"crier/publishing/connector/conformance is imported by no test",
		"a ban names platform/clock: no such folder",
		"the root has no entry apps/",
	} {
		if !slices.Contains(found, want) {
			t.Errorf("of an empty tree it is not said that %q", want)
		}
	}
}

// unused returns a sentence for each folder and each library that the tables name and the tree does not have.
func unused(t tree) (out []string) {
	there := func(folder string) bool {
		return slices.ContainsFunc(t.files, func(f file) bool { return under(f.dir(), folder) })
	}
	for _, a := range arrows {
		for _, folder := range slices.Concat([]string{a.from}, a.to, a.root) {
			if !there(folder) {
				out = append(out, "the import plan names "+folder+": no such folder")
			}
		}
	}
	for _, doors := range [][]door{innerDoors, vendors} {
		for _, d := range doors {
			out = append(out, unusedDoor(t, doors, d)...)
		}
	}
	for _, b := range bans {
		for _, folder := range b.from {
			if !there(folder) {
				out = append(out, "a ban names "+folder+": no such folder")
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

// unusedDoor looks at one door: each of its folders has a file that comes through it, and one for tests only has a test.
func unusedDoor(t tree, doors []door, d door) (out []string) {
	comes := func(test bool, folder string) bool {
		return slices.ContainsFunc(t.files, func(f file) bool {
			return f.test == test && (folder == "" || under(f.dir(), folder)) && slices.ContainsFunc(f.imports, func(i imported) bool {
				at := slices.IndexFunc(doors, func(d door) bool { return fits(i.path, d.path) })
				return at >= 0 && doors[at].path == d.path
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
