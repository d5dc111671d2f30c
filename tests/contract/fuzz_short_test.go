//go:build !long

package contract

// fuzzRequests is how many requests a run makes from the document.
const fuzzRequests = 2500
