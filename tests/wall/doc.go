// Package wall tests that no organization sees another's data. It checks the database's catalogue
// and grants, calls every store method with the wrong organization, and calls every route as every
// caller who must not use it.
package wall
