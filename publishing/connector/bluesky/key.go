package bluesky

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"crier/publishing"
)

const (
	sortable  = "234567abcdefghijklmnopqrstuvwxyz" // base 32 in the order of ASCII
	keyLength = 13
	hashBits  = 30 // 20 low bits of the microseconds, 10 of the clock identifier
)

// recordKey is the publication's place in the repository: a TID whose time is the publication's to about a second. The thirty bits of a hash below
// keep the parts of one thread apart, which share their time.
func recordKey(publication publishing.PublicationID, createdAt time.Time) string {
	sum := sha256.Sum256([]byte("crier record key " + publication.String()))
	low := binary.BigEndian.Uint64(sum[:8]) & (1<<hashBits - 1)
	tid := uint64(createdAt.UnixMicro())<<10&(1<<63-1)&^(1<<hashBits-1) | low
	key := make([]byte, keyLength)
	for i := keyLength - 1; i >= 0; i-- {
		key[i] = sortable[tid&31]
		tid >>= 5
	}
	return string(key)
}
