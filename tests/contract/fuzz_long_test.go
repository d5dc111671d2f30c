//go:build long

package contract

// fuzzRequests is how many requests a run generates from the document.
const fuzzRequests = 50000
