//go:build long

package agents

// killRounds is how often TestKill kills with the build tag long.
const killRounds = 50
