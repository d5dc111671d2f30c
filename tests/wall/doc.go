// Package wall tests that no organization sees another's data: by the database's catalogue, by its grants, and by
// calling every store method with the wrong organization, and every route as everyone who must not use it.
package wall
