package pg

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuidCodec encodes and decodes ids as 16 bytes. For types that implement the database/sql
// interfaces, pgx's own codec uses the text form, which is slow for lists of thousands of ids.
type uuidCodec struct{ pgtype.UUIDCodec }

// identifier is implemented by the types in platform/id. The zero value is encoded as NULL.
type identifier interface{ UUID() uuid.UUID }

// identifierTarget is a pointer to an identifier. NULL is scanned as uuid.Nil.
type identifierTarget interface{ SetUUID(u uuid.UUID) }

// register replaces pgx's codec for uuid and uuid[].
func (u uuidCodec) register(m *pgtype.Map) {
	element := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: u}
	m.RegisterType(element)
	array := &pgtype.ArrayCodec{ElementType: element}
	m.RegisterType(&pgtype.Type{Name: "_uuid", OID: pgtype.UUIDArrayOID, Codec: array})
}

func (u uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	switch value.(type) {
	case identifier, uuid.UUID:
		if format == pgtype.BinaryFormatCode {
			return encodeUUID{}
		}
	}
	return u.UUIDCodec.PlanEncode(m, oid, format, value)
}

type encodeUUID struct{}

func (encodeUUID) Encode(value any, buf []byte) ([]byte, error) {
	if u, plain := value.(uuid.UUID); plain {
		return append(buf, u[:]...), nil
	}
	u := value.(identifier).UUID()
	if u == uuid.Nil {
		return nil, nil
	}
	return append(buf, u[:]...), nil
}

func (u uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	switch target.(type) {
	case identifierTarget, *uuid.UUID:
		if format == pgtype.BinaryFormatCode {
			return scanUUID{}
		}
	}
	return u.UUIDCodec.PlanScan(m, oid, format, target)
}

type scanUUID struct{}

func (scanUUID) Scan(src []byte, target any) error {
	var u uuid.UUID
	if src != nil && len(src) != len(u) {
		return fmt.Errorf("%d bytes are not a UUID", len(src))
	}
	copy(u[:], src)
	switch t := target.(type) {
	case identifierTarget:
		t.SetUUID(u)
	case *uuid.UUID:
		*t = u
	}
	return nil
}
