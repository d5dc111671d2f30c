package db

// RevocationChannel is the Postgres channel that statements notify when keys end. The payload is
// the hash of a key in hexadecimal, or the id of an organization whose keys end or work again.
// Postgres sends the notifications of a transaction when it commits.
const RevocationChannel = "crier_key_revoked"
