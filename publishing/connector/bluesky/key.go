package bluesky

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"crier/publishing"
)

const (
	base32Digits = "234567abcdefghijklmnopqrstuvwxyz" // base 32 in the order of ASCII
	keyLength    = 13
	clockBits    = 10
	perMilli     = 1000 // microseconds
)

// recordKey returns the key of a publication in the repository: a TID whose time is the due time.
// It depends only on values that are frozen with the publication. Example: 3n2s7vov57eak
//
// Lists are sorted by key, so publications of different milliseconds keep their order. A hash
// selects the microsecond within the millisecond, and the clock identifier, to tell apart
// publications of the same millisecond.
func recordKey(publication publishing.PublicationID, due time.Time) string {
	sum := sha256.Sum256([]byte("crier record key " + publication.String()))
	micros := uint64(due.UnixMicro()) + binary.BigEndian.Uint64(sum[:8])%perMilli
	clock := binary.BigEndian.Uint64(sum[8:16]) & (1<<clockBits - 1)
	tid := micros<<clockBits&(1<<63-1) | clock
	key := make([]byte, keyLength)
	for i := keyLength - 1; i >= 0; i-- {
		key[i] = base32Digits[tid&31]
		tid >>= 5
	}
	return string(key)
}
