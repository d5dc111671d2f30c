package fault

// MaxTold is how many faults of one input are told. The others are counted.
const MaxTold = 50

// List gathers the faults of one input: the first MaxTold, and how many more there are. Its zero value has none.
type List struct {
	fields []Field
	more   int
}

// Add appends a fault of a member.
func (l *List) Add(name, message string) {
	if len(l.fields) < MaxTold {
		l.fields = append(l.fields, Field{name, message})
	} else {
		l.more++
	}
}

// Full returns whether further faults are only counted.
func (l *List) Full() bool { return len(l.fields) >= MaxTold }

// Has returns whether a fault of the member is among those that are kept.
func (l *List) Has(name string) bool {
	for _, f := range l.fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

// Merge appends the faults of the fields of err for members that have none yet. An err without fields changes nothing.
func (l *List) Merge(err *Error) {
	for _, f := range err.Fields {
		if !l.Has(f.Name) {
			l.Add(f.Name, f.Message)
		}
	}
	l.more += err.More
}

// Err returns nil for an empty list, else an Invalid error with the faults.
func (l *List) Err(op, message string) error {
	if len(l.fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Op: op, Message: message, Fields: l.fields, More: l.more}
}
