// Package page has what the HTML pages of the service share.
package page

// NoIndex is the value of X-Robots-Tag for what search engines must not list.
const NoIndex = "noindex, nofollow"

// Time is the layout of times for people, in UTC.
const Time = "Monday, 2 January 2006, 15:04 UTC"
