// Package id makes and reads typed, sortable identifiers (UUIDv7).
package id

import (
	"database/sql/driver"
	"fmt"

	"github.com/google/uuid"
)

// ID is a UUID that knows what it names: ID[Post] and ID[Channel] cannot be mixed up. The zero ID means "none".
type ID[T any] struct{ u uuid.UUID }

// New makes a fresh id that sorts after earlier ones.
func New[T any]() ID[T] { return ID[T]{uuid.Must(uuid.NewV7())} }

// Parse reads the canonical 36-character form only; ok is false for anything else.
func Parse[T any](s string) (ID[T], bool) {
	if len(s) != 36 {
		return ID[T]{}, false
	}
	u, err := uuid.Parse(s)
	if err != nil {
		return ID[T]{}, false
	}
	return ID[T]{u}, true
}

// FromUUID names an existing UUID.
func FromUUID[T any](u uuid.UUID) ID[T] { return ID[T]{u} }

// UUID gives the bare value.
func (i ID[T]) UUID() uuid.UUID { return i.u }

// SetUUID is for readers of columns: it names an existing UUID, or nothing.
func (i *ID[T]) SetUUID(u uuid.UUID) { i.u = u }

// IsZero tells whether the id names nothing.
func (i ID[T]) IsZero() bool { return i.u == uuid.Nil }

// String is the canonical form, or "" for the zero id.
func (i ID[T]) String() string {
	if i.IsZero() {
		return ""
	}
	return i.u.String()
}

// MarshalText makes ids strings in JSON and map keys.
func (i ID[T]) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads what MarshalText wrote.
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

// Value stores the id as a uuid column; the zero id is NULL.
func (i ID[T]) Value() (driver.Value, error) {
	if i.IsZero() {
		return nil, nil
	}
	return i.u.String(), nil
}

// Scan reads a uuid column; NULL becomes the zero id.
func (i *ID[T]) Scan(src any) error {
	if src == nil {
		*i = ID[T]{}
		return nil
	}
	return i.u.Scan(src)
}
