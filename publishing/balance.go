package publishing

import (
	"slices"
	"strings"
)

// balance returns sanitised HTML in which each element is closed inside of the element that it was opened in, so that
// it cannot change the page around it. Balanced HTML is returned unchanged. The time is linear.
//
// An element without an end is closed with the one around it, a paragraph before the next block, and a list item before
// the next one. The end of a link, of bold or of underlined text closes no block: the element is closed together with
// the last block that was opened in it. An end without a beginning is dropped; that of a block leaves the line break
// that it makes in plain text.
func balance(clean string) string {
	tags := tagsOf(clean)
	if balanced(tags) {
		return clean
	}
	b := balancer{byName: map[string][]int{}}
	done := 0
	for _, t := range tags {
		b.out.WriteString(clean[done:t.start])
		done = t.end
		switch {
		case t.name == "br": // also its end, which browsers take for a break
			b.out.WriteString("<br>")
		case t.closing:
			b.closeTag(t.name)
		default:
			b.openTag(t.name, strings.TrimRight(clean[t.start:t.end], "/> ")+">")
		}
	}
	b.out.WriteString(clean[done:])
	b.closeTo(0)
	return b.out.String()
}

// balanced reports whether each tag is closed, in the reverse order of the tags.
func balanced(tags []tag) bool {
	var open []string
	for _, t := range tags {
		switch last := len(open) - 1; {
		case t.name == "br":
			if t.closing {
				return false
			}
		case !t.closing:
			open = append(open, t.name)
		case last < 0 || open[last] != t.name:
			return false
		default:
			open = open[:last]
		}
	}
	return len(open) == 0
}

type balancer struct {
	out  strings.Builder
	open []element
	// blocks and byName hold indexes of open; byName is without the elements that have ended.
	blocks []int
	byName map[string][]int
}

// element is an open element. It has ended when its end tag was read while a block in it is still open.
type element struct {
	name  string
	ended bool
}

func (b *balancer) openTag(name, opening string) {
	if !isInline(name) {
		b.closeBlock("p")
	}
	if name == "li" {
		b.closeBlock("li")
	}
	if !isInline(name) {
		b.blocks = append(b.blocks, len(b.open))
	}
	b.byName[name] = append(b.byName[name], len(b.open))
	b.open = append(b.open, element{name: name})
	b.out.WriteString(opening)
}

// closeBlock closes the innermost block if it has this name.
func (b *balancer) closeBlock(name string) {
	if n := len(b.blocks); n > 0 && b.open[b.blocks[n-1]].name == name {
		b.closeTo(b.blocks[n-1])
	}
}

func (b *balancer) closeTag(name string) {
	same := b.byName[name]
	if len(same) == 0 {
		if !isInline(name) {
			b.out.WriteString("<br>")
		}
		return
	}
	at := same[len(same)-1]
	if n := len(b.blocks); n > 0 && at < b.blocks[n-1] && isInline(name) {
		b.open[at].ended, b.byName[name] = true, same[:len(same)-1]
		return
	}
	b.closeTo(at)
	for n := len(b.open); n > 0 && b.open[n-1].ended; n = len(b.open) {
		b.closeTo(n - 1)
	}
}

// closeTo closes all elements from the innermost to number n of those that are open.
func (b *balancer) closeTo(n int) {
	for _, e := range slices.Backward(b.open[n:]) {
		b.out.WriteString("</" + e.name + ">")
		if same := b.byName[e.name]; !e.ended {
			b.byName[e.name] = same[:len(same)-1]
		}
	}
	b.open = b.open[:n]
	for len(b.blocks) > 0 && b.blocks[len(b.blocks)-1] >= n {
		b.blocks = b.blocks[:len(b.blocks)-1]
	}
}

// isInline reports whether an element of the subset is not a block.
func isInline(name string) bool { return name == "a" || name == "u" || name == "strong" }
