package db

// RevocationChannel is the Postgres channel on which statements announce that keys have ended. The
// payload is either a key's hash in hexadecimal or the id of an organization whose keys have ended
// or work again. Postgres sends a transaction's notifications when the transaction commits.
const RevocationChannel = "crier_key_revoked"
