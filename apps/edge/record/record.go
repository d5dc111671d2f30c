// Package record defines the JSON records that the API's routes and webhooks share, and the formats
// of their values.
package record

// Base is the service's URL, without a trailing slash. URLs in records begin with it. Example:
// https://crier.example.com
type Base string
