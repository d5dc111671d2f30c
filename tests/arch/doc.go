// Package arch is the law of the tree: who may import whom, which library has which door, and which calls are made in one place only.
package arch
