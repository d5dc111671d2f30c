package pg

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuids moves ids as their 16 bytes. pgx by itself takes types that database/sql knows through their text, which lists of thousands feel.
type uuids struct{ pgtype.UUIDCodec }

// identifier is a platform/id; the zero one is NULL.
type identifier interface{ UUID() uuid.UUID }

type identifierTarget interface{ SetUUID(u uuid.UUID) }

// register puts the codec in place of pgx's own.
func (u uuids) register(m *pgtype.Map) {
	element := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: u}
	m.RegisterType(element)
	m.RegisterType(&pgtype.Type{Name: "_uuid", OID: pgtype.UUIDArrayOID, Codec: &pgtype.ArrayCodec{ElementType: element}})
}

func (u uuids) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
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

func (u uuids) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
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
		return fmt.Errorf("%d bytes are no UUID", len(src))
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
