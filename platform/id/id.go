// Package id provides typed, sortable identifiers (UUIDv7).
package id

import (
	"database/sql/driver"
	"fmt"

	"github.com/google/uuid"
)

// ID is a UUID with a type parameter for what it identifies, so that a post id cannot be used as a
// channel id. The zero ID means "none". Example: 0193b2c4-7d10-7a31-9c55-2f0e6b1a4d01
type ID[T any] struct{ u uuid.UUID }

// New returns a new id that sorts after all ids generated earlier by this process. It panics if the
// system's source of randomness fails.
func New[T any]() ID[T] { return ID[T]{u: uuid.Must(uuid.NewV7())} }

// Parse parses the canonical 36-character form. It returns false for any other text.
func Parse[T any](s string) (ID[T], bool) {
	if len(s) != 36 {
		return ID[T]{}, false
	}
	u, err := uuid.Parse(s)
	if err != nil {
		return ID[T]{}, false
	}
	return ID[T]{u: u}, true
}

// FromUUID returns the id with the value u. It does not check that u identifies a T.
func FromUUID[T any](u uuid.UUID) ID[T] { return ID[T]{u: u} }

// UUID returns the id without its type. It is uuid.Nil for the zero id.
func (i ID[T]) UUID() uuid.UUID { return i.u }

// SetUUID sets the id. platform/pg uses it to scan uuid columns.
func (i *ID[T]) SetUUID(u uuid.UUID) { i.u = u }

// IsZero reports whether the id means "none". encoding/json calls it for fields with omitzero.
func (i ID[T]) IsZero() bool { return i.u == uuid.Nil }

// String returns the canonical form, or "" for the zero id.
func (i ID[T]) String() string {
	if i.IsZero() {
		return ""
	}
	return i.u.String()
}

// MarshalText returns the same text as String, so that ids are encoded as strings in JSON,
// including as map keys. The error is always nil.
func (i ID[T]) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText parses the result of MarshalText. An empty text becomes the zero id. If the text is
// neither empty nor a valid id, UnmarshalText returns an error that quotes it.
func (i *ID[T]) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*i = ID[T]{}
		return nil
	}
	v, ok := Parse[T](string(b))
	if !ok {
		return fmt.Errorf("not an id: %q", b)
	}
	*i = v
	return nil
}

// Value returns the id as the value of a uuid column. The zero id becomes NULL. The error is always
// nil.
func (i ID[T]) Value() (driver.Value, error) {
	if i.IsZero() {
		return nil, nil
	}
	return i.u.String(), nil
}

// Scan sets the id from a uuid column. NULL becomes the zero id. Scan returns an error for a value
// that is not a UUID.
func (i *ID[T]) Scan(src any) error {
	if src == nil {
		*i = ID[T]{}
		return nil
	}
	return i.u.Scan(src)
}
