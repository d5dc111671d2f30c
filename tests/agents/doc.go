// Package agents runs real clients of the Model Context Protocol, and attackers, against the real
// service.
package agents
