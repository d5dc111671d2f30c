// Package wall proves that no organization sees another's data: by the catalogue of the database, by its grants, and by asking with the wrong organization.
package wall
