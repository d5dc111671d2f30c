// Package record defines the JSON records that the API's routes and webhooks share, and the formats
// of their values.
package record

// Base is the address of the service, without a trailing slash. The addresses in records begin with
// it. Example: https://crier.example.com
type Base string
