//go:build !race

package suite

func suppressRaces() error { return nil }
