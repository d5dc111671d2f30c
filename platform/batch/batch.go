// Package batch processes items in batches, several per call, and isolates the items that make a
// call fail.
package batch

// Isolate calls do with all items. If do fails and blame returns true for the error, an item may be
// the cause. Isolate then splits the items in two and tries each half separately, down to single
// items. If a single item still fails, Isolate passes it and its error to alone. One bad item among
// n costs about 2 log2 n calls.
//
// If blame returns false for an error, such as a database outage, Isolate stops and returns the
// error and the unprocessed items, in order. do must be atomic.
func Isolate[T any](items []T, do func([]T) error, blame func(error) bool, alone func(T, error)) (left []T, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	err = do(items)
	switch {
	case err == nil:
		return nil, nil
	case !blame(err):
		return items, err
	case len(items) == 1:
		alone(items[0], err)
		return nil, nil
	}
	half := len(items) / 2
	if left, err := Isolate(items[:half], do, blame, alone); err != nil {
		return append(left[:len(left):len(left)], items[half:]...), err
	}
	return Isolate(items[half:], do, blame, alone)
}
