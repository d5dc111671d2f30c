package metadata

import (
	"context"
	"errors"
	"io"
	"sort"

	"crier/platform/blob"
	"crier/platform/fault"
)

// Open opens a stored file in its published form. stored contains the encoded edits (see
// Edits.Bytes) that Open applies to the file. Open returns any error from Store.Open, and
// fault.Internal if stored cannot be decoded.
func Open(ctx context.Context, store blob.Store, key string, stored []byte) (blob.File, error) {
	edits, err := Parse(stored)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "metadata.Open", "", err)
	}
	file, err := store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	return Without(file, edits), nil
}

// Without returns a view of a file with the edits applied. Closing the view closes the file.
func Without(file blob.File, edits Edits) blob.File {
	if len(edits) == 0 {
		return file
	}
	f := &edited{file: file, size: file.Size() + edits.Grows(), from: -1}
	var at, out int64
	add := func(p piece) {
		if p.length > 0 {
			p.at = out
			out += p.length
			f.pieces = append(f.pieces, p)
		}
	}
	for _, x := range edits {
		add(piece{length: x.At - at, from: at})
		add(piece{length: int64(len(x.Put)), from: -1, put: x.Put})
		if x.Zero {
			add(piece{length: x.Cut, from: -1})
		}
		at = x.At + x.Cut
	}
	add(piece{length: file.Size() - at, from: at})
	return f
}

// piece is a part of an edited file: a range of the stored file, the bytes in put, or zeros.
type piece struct {
	// at is where the piece begins in the edited file.
	at, length int64
	// from is where the piece begins in the stored file. It is -1 if the piece does not come from
	// the stored file.
	from int64
	put  []byte
}

// edited is a stored file with edits applied. It consists of pieces.
type edited struct {
	file   blob.File
	size   int64
	pieces []piece
	pos    int64
	// from is the current read position in the stored file; -1 if unknown.
	from int64
}

func (f *edited) Size() int64 { return f.size }

func (f *edited) Close() error { return f.file.Close() }

func (f *edited) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.pos
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("metadata: a negative position")
	}
	f.pos = offset
	return offset, nil
}

func (f *edited) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	i := sort.Search(len(f.pieces), func(i int) bool { return f.pieces[i].at+f.pieces[i].length > f.pos })
	if i == len(f.pieces) {
		return 0, io.EOF
	}
	now := f.pieces[i]
	skip := f.pos - now.at
	p = p[:min(int64(len(p)), now.length-skip)]
	n, err := len(p), error(nil)
	switch {
	case now.put != nil:
		copy(p, now.put[skip:])
	case now.from < 0:
		clear(p)
	default:
		n, err = f.readFile(p, now.from+skip)
	}
	f.pos += int64(n)
	return n, err
}

// readFile reads bytes of the stored file, starting at from. If the file ends at or before from,
// readFile returns io.ErrUnexpectedEOF, because no piece may extend past the end of the file.
func (f *edited) readFile(p []byte, from int64) (int, error) {
	if err := f.moveTo(from); err != nil {
		return 0, err
	}
	n, err := f.file.Read(p)
	f.from += int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if n == 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// readOn is the maximum number of bytes that moveTo reads and discards instead of calling Seek. For
// a file in a bucket, each Seek costs a request.
const readOn = 1 << 20

func (f *edited) moveTo(from int64) error {
	ahead, known := from-f.from, f.from >= 0
	if known && ahead == 0 {
		return nil
	}
	f.from = -1
	var err error
	if known && ahead > 0 && ahead <= readOn {
		_, err = io.CopyN(io.Discard, f.file, ahead)
	} else {
		_, err = f.file.Seek(from, io.SeekStart)
	}
	if err == nil {
		f.from = from
	}
	return err
}
