//go:build !long

package contract

// fuzzRequests is how many requests a run makes from the document; there are more with the tag long.
const fuzzRequests = 2500
