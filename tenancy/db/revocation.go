package db

// RevocationChannel is notified by statements that end keys: of the hash of the key in hexadecimal,
// or of the id of the organization whose keys end or work again. Postgres sends the notifications
// of a transaction when it commits.
const RevocationChannel = "crier_key_revoked"
