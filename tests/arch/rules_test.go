package arch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// violation is one violation of a rule. Exceptions match dir and what.
type violation struct {
	dir, what, message string
}

func newViolation(f file, line int, what, format string, args ...any) violation {
	message := fmt.Sprintf("%s:%d: ", f.path, line) + fmt.Sprintf(format, args...)
	return violation{dir: f.dir(), what: what, message: message}
}

// rules maps the name of each rule to its check. Rules made by eachFile also apply to test files;
// the others apply to product files only.
var rules = map[string]func(tree) []violation{
	"import plan":         eachProduct(layerRule),
	"restricted packages": eachProduct(func(f file) []violation { return restrictionRule(f, restricted, false) }),
	"vendors":             eachProduct(func(f file) []violation { return restrictionRule(f, vendors, true) }),
	"forbidden calls":     eachProduct(callRule),
	"aliases":             eachFile(aliasRule),
	"dot imports":         eachFile(dotRule),
	"package names":       eachFile(nameRule),
	"package comments":    commentRule,
	"cycles":              cycleRule,
	"top level":           topRule,
	"no Go in ops":        eachFile(opsRule),
	"nouns":               eachProduct(nounRule),
	"sizes":               sizeRule,
	"nouns of the edge":   eachProduct(edgeRule),
}

func eachFile(rule func(file) []violation) func(tree) []violation {
	return func(t tree) (out []violation) {
		for _, f := range t.files {
			out = append(out, rule(f)...)
		}
		return out
	}
}

func eachProduct(rule func(file) []violation) func(tree) []violation {
	return eachFile(func(f file) []violation {
		if f.test {
			return nil
		}
		return rule(f)
	})
}

func layerRule(f file) (out []violation) {
	at := slices.IndexFunc(layers, func(a layer) bool {
		return a.self && f.dir() == a.from || !a.self && inFolder(f.dir(), a.from)
	})
	if at < 0 {
		return []violation{newViolation(f, 1, f.dir(), "this folder has no line in the import plan")}
	}
	plan := layers[at]
	for _, i := range f.imports {
		dir, ours := i.internal()
		switch {
		case !ours:
			if plan.pure && slices.Contains(impure, i.path) {
				out = append(out, newViolation(f, i.line, i.path, "%s holds types and rules without I/O, it may not import %s", f.dir(), i.path))
			}
		case inFolder(dir, plan.to...), isFolder(dir, plan.root...), samePart(f.dir(), dir):
		default:
			out = append(out, newViolation(f, i.line, i.path, "%s may not import %s", f.dir(), dir))
		}
	}
	return out
}

// samePart reports whether a and b are a package of platform and one of its sub-packages.
func samePart(a, b string) bool {
	return inFolder(a, "platform") && (inFolder(a, b) || inFolder(b, a))
}

func restrictionRule(f file, restrictions []restriction, all bool) (out []violation) {
	for _, i := range f.imports {
		at := slices.IndexFunc(restrictions, func(d restriction) bool { return matchesPath(i.path, d.path) })
		switch {
		case at < 0 && all && i.external():
			out = append(out, newViolation(f, i.line, i.path, "%s is not in the list of libraries: add to tests/arch from where it may be used", i.path))
		case at < 0, slices.ContainsFunc(restrictions[at].from, func(d string) bool { return inFolder(f.dir(), d) }):
		default:
			out = append(out, newViolation(f, i.line, i.path, "%s is imported only from %v", i.path, restrictions[at].from))
		}
	}
	return out
}

// nounRule reports imports of a noun of publishing or tenancy, or of the noun's store, by packages
// that may not import it.
func nounRule(f file) (out []violation) {
	leaves := slices.Concat(publishingLeaves, tenancyLeaves)
	for _, i := range f.imports {
		dir, _ := i.internal()
		domain, rest, _ := strings.Cut(dir, "/")
		name, below, _ := strings.Cut(rest, "/")
		if domain != "publishing" && domain != "tenancy" || name == "" {
			continue
		}
		noun := domain + "/" + name
		switch {
		case inFolder(f.dir(), noun):
		case below == "store":
			out = append(out, newViolation(f, i.line, i.path, "only %s imports its store", noun))
		case inFolder(dir, leaves...), inFolder(f.dir(), "apps/boot", "tests"), inFolder(f.dir(), nounUsers[noun]...):
		default:
			out = append(out, newViolation(f, i.line, i.path, "%s may not import the noun %s: declare a port, which apps/boot plugs", f.dir(), noun))
		}
	}
	return out
}

// matchesPath reports whether an import path is a package or below it. A path that ends in "/"
// matches only the packages below it.
func matchesPath(importPath, packagePath string) bool {
	return importPath == packagePath || strings.HasPrefix(importPath, strings.TrimSuffix(packagePath, "/")+"/")
}

func callRule(f file) (out []violation) {
	for _, u := range f.uses {
		for _, b := range bans {
			if u.path != b.path || !named(u.name, b.names) || slices.ContainsFunc(b.from, func(d string) bool { return inFolder(f.dir(), d) }) {
				continue
			}
			what := u.name
			if u.path != "" {
				what = defaultName(u.path) + "." + u.name
			}
			out = append(out, newViolation(f, u.line, what, "%s: %s (allowed in %v)", what, b.why, b.from))
		}
	}
	return out
}

func named(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return name == p || open && strings.HasPrefix(name, prefix)
	})
}

func aliasRule(f file) (out []violation) {
	for _, i := range f.imports {
		dir, _ := i.internal()
		domain, part := path.Split(dir)
		domain = strings.TrimSuffix(domain, "/")
		alias := path.Base(domain) + part
		if part != "store" && part != "service" || !inFolder(domain, domains...) || i.name == alias {
			continue
		}
		out = append(out, newViolation(f, i.line, i.path, "import %s as %s", i.path, alias))
	}
	return out
}

func dotRule(f file) (out []violation) {
	for _, i := range f.imports {
		if i.name == "." {
			out = append(out, newViolation(f, i.line, i.path, "a dot import hides where names come from"))
		}
	}
	return out
}

func nameRule(f file) []violation {
	name := strings.TrimSuffix(f.pkg, "_test")
	if base := path.Base(f.dir()); name != "main" && name != base {
		return []violation{newViolation(f, 1, name, "package %s is in a folder named %s", name, base)}
	}
	return nil
}

func opsRule(f file) []violation {
	if !inFolder(f.dir(), "ops") {
		return nil
	}
	return []violation{newViolation(f, 1, f.path, "ops holds no product code")}
}

// commentRule requires a comment "Package x ..." or "Command ..." in each package.
func commentRule(t tree) (out []violation) {
	documented, where := map[string]bool{}, map[string]file{}
	for _, f := range t.files {
		want := "Package " + f.pkg + " "
		if f.pkg == "main" {
			want = "Command "
		}
		documented[f.dir()] = documented[f.dir()] || strings.HasPrefix(f.doc, want)
		where[f.dir()] = f
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			f := where[dir]
			f.path = dir
			out = append(out, violation{dir: dir, what: "comment", message: dir + ": package " + f.pkg + " has no package comment"})
		}
	}
	return out
}

// cycleRule treats each top-level folder as one package.
func cycleRule(t tree) []violation {
	to := map[string][]string{}
	for _, f := range t.files {
		from, _, _ := strings.Cut(f.path, "/")
		for _, i := range f.imports {
			dir, ours := i.internal()
			top, _, _ := strings.Cut(dir, "/")
			if !f.test && ours && top != from && !slices.Contains(to[from], top) {
				to[from] = append(to[from], top)
			}
		}
	}
	for _, start := range slices.Sorted(maps.Keys(to)) {
		if path := pathBack(to, start, []string{start}); path != nil {
			return []violation{{dir: start, what: "cycle", message: "folders import each other: " + strings.Join(path, " -> ")}}
		}
	}
	return nil
}

// pathBack extends a path of folders to a path that ends at start, or returns nil.
func pathBack(to map[string][]string, start string, path []string) []string {
	for _, next := range to[path[len(path)-1]] {
		if next == start {
			return append(path, next)
		}
		if !slices.Contains(path, next) {
			if found := pathBack(to, start, append(slices.Clone(path), next)); found != nil {
				return found
			}
		}
	}
	return nil
}

func topRule(t tree) (out []violation) {
	for _, name := range t.top {
		if !slices.Contains(topLevel, name) && !strings.HasPrefix(name, ".") {
			out = append(out, violation{dir: ".", what: name, message: name + ": not an entry of the root; see the layout in CONTRIBUTING.md"})
		}
	}
	return out
}

// check runs every rule. It returns the violations without an exception, by rule, and the
// exceptions that match no violation.
func check(t tree, allowed []exception) (violations map[string][]violation, stale []exception) {
	violations, used := map[string][]violation{}, make([]bool, len(allowed))
	for name, rule := range rules {
		for _, f := range rule(t) {
			at := slices.IndexFunc(allowed, func(e exception) bool { return e.dir == f.dir && e.what == f.what })
			if at < 0 {
				violations[name] = append(violations[name], f)
			} else {
				used[at] = true
			}
		}
	}
	for i, e := range allowed {
		if !used[i] {
			stale = append(stale, e)
		}
	}
	return violations, stale
}
