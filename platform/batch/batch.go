// Package batch carries out work on many items batch by batch and isolates the item that makes it fail.
package batch

// Isolate calls do with all items. When do fails and blame says that an item may be the cause, the items are split in
// two and each half is tried by itself, down to single items; a single item that still fails goes to alone with its
// error. So n items with one bad one cost about 2 log2 n calls. An error that blame does not accept (the database is
// away) ends the work and is returned together with the items that were not done, in their order; do must be atomic.
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
