package arch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// fault is one breach: dir and what are matched with the exceptions.
type fault struct {
	dir, what, message string
}

func breach(f file, line int, what, format string, args ...any) fault {
	return fault{f.dir(), what, fmt.Sprintf("%s:%d: ", f.path, line) + fmt.Sprintf(format, args...)}
}

// rules by name. Test files obey those that say so; all else is about what ships.
var rules = map[string]func(tree) []fault{
	"arrows":           eachProduct(arrowRule),
	"inner doors":      eachProduct(func(f file) []fault { return doorRule(f, innerDoors, false) }),
	"vendors":          eachProduct(func(f file) []fault { return doorRule(f, vendors, true) }),
	"forbidden calls":  eachProduct(callRule),
	"file length":      eachProduct(lengthRule),
	"interface width":  eachProduct(widthRule),
	"aliases":          eachFile(aliasRule),
	"dot imports":      eachFile(dotRule),
	"package names":    eachFile(nameRule),
	"package comments": commentRule,
	"cycles":           cycleRule,
	"top level":        topRule,
	"no Go in ops":     eachFile(opsRule),
}

func eachFile(rule func(file) []fault) func(tree) []fault {
	return func(t tree) (out []fault) {
		for _, f := range t.files {
			out = append(out, rule(f)...)
		}
		return out
	}
}

func eachProduct(rule func(file) []fault) func(tree) []fault {
	return eachFile(func(f file) []fault {
		if f.test {
			return nil
		}
		return rule(f)
	})
}

func arrowRule(f file) (out []fault) {
	at := slices.IndexFunc(arrows, func(a arrow) bool {
		return a.self && f.dir() == a.from || !a.self && under(f.dir(), a.from)
	})
	if at < 0 {
		return []fault{breach(f, 1, f.dir(), "this folder has no line in the import plan")}
	}
	law := arrows[at]
	for _, i := range f.imports {
		dir, ours := i.ours()
		switch {
		case !ours:
			if law.pure && slices.Contains(impure, i.path) {
				out = append(out, breach(f, i.line, i.path, "%s holds words and rules only, it does not import %s", f.dir(), i.path))
			}
		case under(dir, law.to...), exactly(dir, law.root...), samePart(f.dir(), dir):
		default:
			out = append(out, breach(f, i.line, i.path, "%s may not import %s", f.dir(), dir))
		}
	}
	return out
}

// samePart tells whether two packages of platform are one part and its sub-folder.
func samePart(a, b string) bool {
	return under(a, "platform") && (under(a, b) || under(b, a))
}

func doorRule(f file, doors []door, all bool) (out []fault) {
	for _, i := range f.imports {
		at := slices.IndexFunc(doors, func(d door) bool { return fits(i.path, d.path) })
		switch {
		case at < 0 && all && i.foreign():
			out = append(out, breach(f, i.line, i.path, "%s has no door: say in tests/arch from where it may be used", i.path))
		case at < 0, slices.ContainsFunc(doors[at].from, func(d string) bool { return under(f.dir(), d) }):
		default:
			out = append(out, breach(f, i.line, i.path, "%s is imported only from %v", i.path, doors[at].from))
		}
	}
	return out
}

// fits tells whether an import path is a package or something below it; a door that ends in "/" has only the latter.
func fits(importPath, doorPath string) bool {
	return importPath == doorPath || strings.HasPrefix(importPath, strings.TrimSuffix(doorPath, "/")+"/")
}

func callRule(f file) (out []fault) {
	for _, u := range f.uses {
		for _, b := range bans {
			if u.path != b.path || !named(u.name, b.names) || slices.ContainsFunc(b.from, func(d string) bool { return under(f.dir(), d) }) {
				continue
			}
			what := u.name
			if u.path != "" {
				what = spokenName(u.path) + "." + u.name
			}
			out = append(out, breach(f, u.line, what, "%s: %s (allowed in %v)", what, b.why, b.from))
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

func lengthRule(f file) []fault {
	if f.lines <= maxLines || f.made || longFiles[f.path] != "" {
		return nil
	}
	return []fault{breach(f, maxLines, f.path, "%d lines, at most %d: one file, one thing", f.lines, maxLines)}
}

func widthRule(f file) (out []fault) {
	for _, name := range f.wide {
		out = append(out, breach(f, 1, name, "interface %s has more than %d methods", name, widest))
	}
	return out
}

func aliasRule(f file) (out []fault) {
	for _, i := range f.imports {
		dir, _ := i.ours()
		domain, part := path.Split(dir)
		domain = strings.TrimSuffix(domain, "/")
		if part != "store" && part != "service" || !slices.Contains(domains, domain) || i.name == domain+part {
			continue
		}
		out = append(out, breach(f, i.line, i.path, "import %s as %s", i.path, domain+part))
	}
	return out
}

func dotRule(f file) (out []fault) {
	for _, i := range f.imports {
		if i.name == "." {
			out = append(out, breach(f, i.line, i.path, "a dot import hides where names come from"))
		}
	}
	return out
}

func nameRule(f file) []fault {
	name := strings.TrimSuffix(f.pkg, "_test")
	if slices.Contains(emptyNames, name) {
		return []fault{breach(f, 1, name, "%q says nothing about what a package is for", name)}
	}
	if base := path.Base(f.dir()); name != "main" && name != base {
		return []fault{breach(f, 1, name, "package %s lies in a folder named %s", name, base)}
	}
	return nil
}

func opsRule(f file) []fault {
	if !under(f.dir(), "ops") {
		return nil
	}
	return []fault{breach(f, 1, f.path, "ops holds no product code")}
}

// commentRule wants one sentence, "Package x …" or "Command x …", in each package.
func commentRule(t tree) (out []fault) {
	said, where := map[string]bool{}, map[string]file{}
	for _, f := range t.files {
		want := "Package " + f.pkg + " "
		if f.pkg == "main" {
			want = "Command "
		}
		said[f.dir()] = said[f.dir()] || strings.HasPrefix(f.doc, want)
		where[f.dir()] = f
	}
	for _, dir := range slices.Sorted(maps.Keys(said)) {
		if !said[dir] {
			f := where[dir]
			f.path = dir
			out = append(out, fault{dir, "comment", dir + ": no comment says what package " + f.pkg + " is for"})
		}
	}
	return out
}

// cycleRule looks at the folders of the top level as if each were one package.
func cycleRule(t tree) []fault {
	to := map[string][]string{}
	for _, f := range t.files {
		from, _, _ := strings.Cut(f.path, "/")
		for _, i := range f.imports {
			dir, ours := i.ours()
			top, _, _ := strings.Cut(dir, "/")
			if !f.test && ours && top != from && !slices.Contains(to[from], top) {
				to[from] = append(to[from], top)
			}
		}
	}
	for _, start := range slices.Sorted(maps.Keys(to)) {
		if way := back(to, start, []string{start}); way != nil {
			return []fault{{start, "cycle", "folders import each other: " + strings.Join(way, " -> ")}}
		}
	}
	return nil
}

// back finds a way from the last folder of the path to start.
func back(to map[string][]string, start string, way []string) []string {
	for _, next := range to[way[len(way)-1]] {
		if next == start {
			return append(way, next)
		}
		if !slices.Contains(way, next) {
			if found := back(to, start, append(slices.Clone(way), next)); found != nil {
				return found
			}
		}
	}
	return nil
}

func topRule(t tree) (out []fault) {
	for _, name := range t.top {
		if !slices.Contains(topLevel, name) && !strings.HasPrefix(name, ".") {
			out = append(out, fault{".", name, name + ": the root has no such entry; see the layout in README.md"})
		}
	}
	return out
}

// judge runs every rule and sets the exceptions aside; those that excuse nothing are told.
func judge(t tree, allowed []exception) (faults map[string][]fault, stale []exception) {
	faults, used := map[string][]fault{}, make([]bool, len(allowed))
	for name, rule := range rules {
		for _, f := range rule(t) {
			at := slices.IndexFunc(allowed, func(e exception) bool { return e.dir == f.dir && e.what == f.what })
			if at < 0 {
				faults[name] = append(faults[name], f)
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
	return faults, stale
}
