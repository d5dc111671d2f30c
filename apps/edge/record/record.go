// Package record has the JSON records of the API, once for all routes and webhooks, and the forms of their values.
package record

// Base is the address of the service, without a slash at the end, with which the addresses in records begin.
type Base string
