package agents

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// form is a form on a page, filled in as a person does who sees labels and buttons.
type form struct {
	// action is relative to the page's address.
	action  string
	fields  []field
	buttons []button
}

// field is an input, a text area or one option of a list.
type field struct {
	name, kind, value, label string
	// on reports whether a checkbox, radio button or option is chosen. It is true for other kinds.
	on bool
}

type button struct{ name, value, text string }

// readForm returns the form that has a button with the given text. It fails the test if the page
// has none.
func readForm(t testing.TB, page string, text *regexp.Regexp) *form {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Label && attribute(n, "for") != "" {
			labels[attribute(n, "for")] = words(n)
		}
	}
	for n := range root.Descendants() {
		if n.DataAtom != atom.Form {
			continue
		}
		if f := newForm(n, labels); f.button(text) != nil {
			return f
		}
	}
	t.Fatalf("the page has no form with a button %s:\n%s", text, page)
	return nil
}

func newForm(n *html.Node, labels map[string]string) *form {
	f := &form{action: attribute(n, "action")}
	for c := range n.Descendants() {
		name, kind := attribute(c, "name"), attribute(c, "type")
		switch c.DataAtom {
		case atom.Input:
			if kind == "submit" {
				f.buttons = append(f.buttons, button{name: name, value: attribute(c, "value"), text: attribute(c, "value")})
				continue
			}
			chooses := kind == "checkbox" || kind == "radio"
			value := attribute(c, "value")
			if chooses && value == "" {
				value = "on"
			}
			f.fields = append(f.fields, field{
				name: name, kind: kind, value: value, label: labelOf(c, labels), on: !chooses || has(c, "checked"),
			})
		case atom.Textarea:
			f.fields = append(f.fields, field{name: name, kind: "text", value: words(c), label: labelOf(c, labels), on: true})
		case atom.Select:
			f.fields = append(f.fields, options(c, labels)...)
		case atom.Button:
			if kind == "" || kind == "submit" {
				f.buttons = append(f.buttons, button{name: name, value: attribute(c, "value"), text: words(c)})
			}
		}
	}
	return f
}

// options returns a field for each option of a list. A list that allows one option has its first
// one chosen if no other is.
func options(list *html.Node, labels map[string]string) (out []field) {
	chosen := false
	for o := range list.Descendants() {
		if o.DataAtom == atom.Option {
			on := has(o, "selected")
			chosen = chosen || on
			value := attribute(o, "value")
			if !has(o, "value") {
				value = words(o)
			}
			label := labelOf(list, labels) + " " + words(o)
			out = append(out, field{name: attribute(list, "name"), kind: "option", value: value, label: label, on: on})
		}
	}
	if len(out) > 0 && !chosen && !has(list, "multiple") {
		out[0].on = true
	}
	return out
}

// labelOf returns the label of a field with the legends around it.
func labelOf(n *html.Node, labels map[string]string) string {
	parts := []string{attribute(n, "aria-label"), labels[attribute(n, "id")]}
	for p := range n.Ancestors() {
		switch p.DataAtom {
		case atom.Label:
			parts = append(parts, words(p))
		case atom.Fieldset:
			for c := range p.ChildNodes() {
				if c.DataAtom == atom.Legend {
					parts = append(parts, words(c))
				}
			}
		}
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// words returns the text below a node with single spaces.
func words(n *html.Node) string {
	var out []string
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			out = append(out, c.Data)
		}
	}
	return strings.Join(strings.Fields(strings.Join(out, " ")), " ")
}

func (f *form) button(text *regexp.Regexp) *button {
	for i := range f.buttons {
		if text.MatchString(f.buttons[i].text) {
			return &f.buttons[i]
		}
	}
	return nil
}

// choose checks the box, radio button or option whose label matches. It fails the test if there is
// none.
func (f *form) choose(t testing.TB, label *regexp.Regexp) {
	t.Helper()
	for i, x := range f.fields {
		if (x.kind == "checkbox" || x.kind == "radio" || x.kind == "option") && label.MatchString(x.label) {
			for j := range f.fields {
				if x.kind == "radio" && f.fields[j].name == x.name {
					f.fields[j].on = false
				}
			}
			f.fields[i].on = true
			return
		}
	}
	t.Fatalf("the form has no box labelled %s: %+v", label, f.fields)
}

// clear unchecks the boxes whose label matches.
func (f *form) clear(label *regexp.Regexp) {
	for i, x := range f.fields {
		if x.kind == "checkbox" && label.MatchString(x.label) {
			f.fields[i].on = false
		}
	}
}

// fill writes into the field whose label matches. It fails the test if there is none.
func (f *form) fill(t testing.TB, label *regexp.Regexp, value string) {
	t.Helper()
	for i, x := range f.fields {
		if x.kind != "hidden" && x.kind != "checkbox" && x.kind != "radio" && x.kind != "option" && label.MatchString(x.label) {
			f.fields[i].value = value
			return
		}
	}
	t.Fatalf("the form has no field labelled %s: %+v", label, f.fields)
}

// values returns what a browser sends when the button is pressed.
func (f *form) values(pressed *button) url.Values {
	out := url.Values{}
	for _, x := range f.fields {
		if x.on && x.name != "" {
			out.Add(x.name, x.value)
		}
	}
	if pressed != nil && pressed.name != "" {
		out.Add(pressed.name, pressed.value)
	}
	return out
}

var refreshURL = regexp.MustCompile(`(?i)^\s*\d+\s*;\s*url\s*=\s*['"]?(.*?)['"]?\s*$`)

// leads returns the addresses to which a page leads: its refresh and its links.
func leads(t testing.TB, page string) (out []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		switch {
		case n.DataAtom == atom.Meta && strings.EqualFold(attribute(n, "http-equiv"), "refresh"):
			if found := refreshURL.FindStringSubmatch(attribute(n, "content")); found != nil {
				out = append(out, found[1])
			}
		case n.DataAtom == atom.A && attribute(n, "href") != "":
			out = append(out, attribute(n, "href"))
		}
	}
	return out
}
