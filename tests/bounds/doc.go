// Package bounds tests the limits of every route: how many bytes it reads, returns and stores, and
// how long it waits. It takes the routes from the route table, so new routes are tested without a
// change here.
package bounds
