package bluesky

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"crier/publishing"
)

const (
	base32Digits = "234567abcdefghijklmnopqrstuvwxyz" // base 32 in ASCII order
	keyLength    = 13
	clockBits    = 10
	perMilli     = 1000 // microseconds
)

// recordKey returns a publication's record key: a TID whose timestamp is the due time. The key
// depends only on values that never change for a publication. Example: 3n2s7vov57eak
//
// Servers list records in key order, so publications due in different milliseconds stay in order.
// To distinguish publications due in the same millisecond, a hash of the publication ID determines
// the clock identifier and the microseconds within the millisecond.
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
