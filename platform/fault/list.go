package fault

// MaxListed is the greatest number of faults that an answer lists for one input. The others are only counted.
const MaxListed = 50

// List collects the faults of one input: the first MaxListed of them, and the number of the others. The zero value is
// an empty list.
type List struct {
	fields []Field
	more   int
}

// Add appends a fault of the member with the path name (Field.Name), or counts it when the list is full. The client
// sees the message.
func (l *List) Add(name, message string) {
	if len(l.fields) < MaxListed {
		l.fields = append(l.fields, Field{Name: name, Message: message})
	} else {
		l.more++
	}
}

// Full reports whether further faults are only counted.
func (l *List) Full() bool { return len(l.fields) >= MaxListed }

// Has reports whether the list contains a fault of the member. Faults that were only counted are not found.
func (l *List) Has(name string) bool {
	for _, f := range l.fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

// Merge adds the fields of err whose members have no fault in the list yet, and the number of err's unlisted faults.
func (l *List) Merge(err *Error) {
	for _, f := range err.Fields {
		if !l.Has(f.Name) {
			l.Add(f.Name, f.Message)
		}
	}
	l.more += err.More
}

// Err returns nil for an empty list, else an Invalid fault with the listed fields and the number of the others.
func (l *List) Err(op, message string) error {
	if len(l.fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Op: op, Message: message, Fields: l.fields, More: l.more}
}
