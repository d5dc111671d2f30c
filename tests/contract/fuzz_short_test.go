//go:build !long

package contract

// fuzzRequests is how many requests a run generates from the document. There are more with the
// build tag long.
const fuzzRequests = 2500
