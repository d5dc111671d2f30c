//go:build !long

package agents

// killRounds is how often TestKill kills without the build tag long: once in each way.
const killRounds = 4
