// Package bounds tests the limits of every route: the bytes that it reads, answers and stores, and how long it waits.
// It takes the routes from the route table, so a new route is tested without a change here.
package bounds
