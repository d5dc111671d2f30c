package fault

// MaxListed is the maximum number of faults listed for one input. Further faults are only counted.
const MaxListed = 50

// List collects the faults in one input. It keeps the first MaxListed and counts the rest. The zero
// value is an empty list.
type List struct {
	fields []Field
	more   int
}

// Add adds a fault in the field whose path is name (see Field.Name). message is shown to the
// client. If the list is full, the fault is only counted.
func (l *List) Add(name, message string) {
	if len(l.fields) < MaxListed {
		l.fields = append(l.fields, Field{Name: name, Message: message})
	} else {
		l.more++
	}
}

// Full reports whether the list is full. If so, further faults are only counted.
func (l *List) Full() bool { return len(l.fields) >= MaxListed }

// Has reports whether the list contains a fault in the field whose path is name. It ignores faults
// that were only counted.
func (l *List) Has(name string) bool {
	for _, f := range l.fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

// Merge adds err's faults, except those in fields that already have a fault in the list. It also
// adds err.More to the count of unlisted faults.
func (l *List) Merge(err *Error) {
	for _, f := range err.Fields {
		if !l.Has(f.Name) {
			l.Add(f.Name, f.Message)
		}
	}
	l.more += err.More
}

// Err returns nil if the list is empty. Otherwise, it returns an Invalid fault with the listed
// fields and the count of unlisted faults.
func (l *List) Err(op, message string) error {
	if len(l.fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Op: op, Message: message, Fields: l.fields, More: l.more}
}
