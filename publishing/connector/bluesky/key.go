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
	clockBits = 10
	within    = 1000 // microseconds: a publication's time has milliseconds
)

// recordKey is the place of a publication in the repository: a TID whose time is when the publication is due. It
// depends on nothing that a lost row or a later try could change. Lists are sorted by it, so that publications of
// different milliseconds stand in their order; a hash chooses the microsecond within and the clock identifier, which
// keeps those of the same millisecond apart.
func recordKey(publication publishing.PublicationID, due time.Time) string {
	sum := sha256.Sum256([]byte("crier record key " + publication.String()))
	micros := uint64(due.UnixMicro()) + binary.BigEndian.Uint64(sum[:8])%within
	clock := binary.BigEndian.Uint64(sum[8:16]) & (1<<clockBits - 1)
	tid := micros<<clockBits&(1<<63-1) | clock
	key := make([]byte, keyLength)
	for i := keyLength - 1; i >= 0; i-- {
		key[i] = sortable[tid&31]
		tid >>= 5
	}
	return string(key)
}
