// Package arch enforces the import plan: which packages a folder may import, which folders may use
// a library, and which calls are allowed in one place only.
package arch
