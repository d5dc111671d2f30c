// Package bounds tests that no route takes, answers, stores or waits for more than it must, whoever asks: a new route is
// tested as soon as it is in the table.
package bounds
