package db

// RevocationChannel is the Postgres channel on which statements announce that API keys have stopped
// working or that their expiry has changed. The payload is either a key's hash in hexadecimal, or
// the id of an organization whose keys have stopped working or work again. Postgres sends a
// transaction's notifications when the transaction commits.
const RevocationChannel = "crier_key_revoked"
