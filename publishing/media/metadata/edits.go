// Package metadata finds what a picture or a video says about its maker: where and when it was made, with what, by whom,
// and small copies of it. It reads the file without that. No picture is encoded again.
//
// What stays is chosen, not what goes: the parts of a format that a decoder needs, the colour profile, and the
// orientation. Everything else goes, also what nobody has thought of.
package metadata

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// Edit replaces bytes of a file.
type Edit struct {
	// At is the position in the file, and Cut the number of bytes that go from there on.
	At, Cut int64
	// Put comes in their place.
	Put []byte
	// Zero means that as many zeros come in their place, and Put is empty.
	Zero bool
}

// Edits are what is to be replaced in a file, in the order of the file. They do not overlap.
type Edits []Edit

// Grows returns by how many bytes a file grows when it is edited. It is negative for nearly all.
func (e Edits) Grows() (n int64) {
	for _, x := range e {
		n += int64(len(x.Put))
		if !x.Zero {
			n -= x.Cut
		}
	}
	return n
}

// Bytes returns the Edits as Parse reads them; nil for none. The length is a few bytes for each.
func (e Edits) Bytes() []byte {
	var out []byte
	var at int64
	for _, x := range e {
		out = binary.AppendUvarint(out, uint64(x.At-at))
		out = binary.AppendUvarint(out, uint64(x.Cut))
		kind := uint64(len(x.Put)) << 1
		if x.Zero {
			kind = 1
		}
		out = append(binary.AppendUvarint(out, kind), x.Put...)
		at = x.At + x.Cut
	}
	return out
}

var errBroken = errors.New("metadata: the stored edits are broken")

// Parse returns the Edits that Bytes has encoded.
func Parse(stored []byte) (Edits, error) {
	var out Edits
	var at int64
	number := func() int64 {
		n, size := binary.Uvarint(stored)
		if size <= 0 || n > 1<<62 {
			stored = nil
			return -1
		}
		stored = stored[size:]
		return int64(n)
	}
	for len(stored) > 0 {
		gap, cut, kind := number(), number(), number()
		length := kind >> 1
		if gap < 0 || cut < 0 || kind < 0 || length > int64(len(stored)) || at+gap < at || at+gap+cut < at+gap {
			return nil, errBroken
		}
		x := Edit{At: at + gap, Cut: cut, Zero: kind == 1}
		if length > 0 {
			x.Put = slices.Clone(stored[:length])
		}
		stored, at = stored[length:], x.At+x.Cut
		out = append(out, x)
	}
	return out, nil
}

// ordered returns edits in the order of a file of so many bytes, neighbours of the same kind as one. What lies within
// another edit or behind the end goes.
func ordered(edits []Edit, size int64) Edits {
	slices.SortStableFunc(edits, func(a, b Edit) int { return cmp.Compare(a.At, b.At) })
	var out Edits
	var end int64
	for _, x := range edits {
		if x.Cut = min(x.Cut, size-x.At); x.Cut <= 0 {
			continue
		}
		if x.At < end {
			rest := x.At + x.Cut - end
			if !x.Zero || rest <= 0 {
				continue
			}
			x.At, x.Cut = end, rest
		}
		end = x.At + x.Cut
		if last := len(out) - 1; last >= 0 && out[last].At+out[last].Cut == x.At && out[last].Zero == x.Zero &&
			len(x.Put) == 0 {
			out[last].Cut += x.Cut
			continue
		}
		out = append(out, x)
	}
	return out
}
