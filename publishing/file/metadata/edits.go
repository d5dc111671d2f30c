// Package metadata finds data in a picture or video that reveals its origin, such as the time, the
// place, the author or the camera. It also finds embedded thumbnails. Open opens a stored file
// without any of this data. Pictures are not re-encoded.
//
// The package defines what stays, not what is removed. The parts that a decoder needs, the color
// profile and the orientation stay. Everything else is removed, including unknown kinds of data.
package metadata

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// Edit replaces bytes of a file.
type Edit struct {
	// At is the position in the file. Cut is the number of bytes to remove at that position.
	At, Cut int64
	// Put is inserted where the bytes were removed.
	Put []byte
	// Zero means that each removed byte is replaced with a zero. In that case, Put is empty.
	Zero bool
}

// Edits are the replacements to make in a file, in file order. They do not overlap.
type Edits []Edit

// continues reports whether x begins where y ends, so that the two can be merged.
func (x Edit) continues(y Edit) bool {
	return y.At+y.Cut == x.At && y.Zero == x.Zero && len(x.Put) == 0
}

// Grows returns how many bytes longer the edits make a file. The result is negative for nearly all
// files.
func (e Edits) Grows() (n int64) {
	for _, x := range e {
		n += int64(len(x.Put))
		if !x.Zero {
			n -= x.Cut
		}
	}
	return n
}

// Bytes encodes the Edits in a form that Parse decodes. Each edit takes only a few bytes. If there
// are no edits, Bytes returns nil.
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

// Parse decodes Edits encoded by Bytes.
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

// ordered sorts the edits to a file of the given size and merges adjacent edits of the same kind.
// It drops anything that lies within another edit or past the end of the file.
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
		if last := len(out) - 1; last >= 0 && x.continues(out[last]) {
			out[last].Cut += x.Cut
			continue
		}
		out = append(out, x)
	}
	return out
}
