package env

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Faults collects the faults that a Validate method finds. The zero Faults is empty.
type Faults struct{ all []error }

// Add adds a Fault. Like Fault.Message, message is a predicate without a subject and must not
// contain the value.
func (f *Faults) Add(name, message string) {
	f.all = append(f.all, Fault{Name: name, Message: message})
}

// Number adds a Fault unless value is between least and most, inclusive. The message states both
// bounds.
func (f *Faults) Number(name string, value, least, most int64) {
	if value < least || value > most {
		f.Add(name, fmt.Sprintf("must be a whole number from %d to %d", least, most))
	}
}

// Duration adds a Fault unless value is between least and most, inclusive. The message states both
// bounds.
func (f *Faults) Duration(name string, value, least, most time.Duration) {
	if value < least || value > most {
		f.Add(name, fmt.Sprintf("must be a duration from %s to %s", short(least), short(most)))
	}
}

// Err returns an error that joins the faults, or nil if there are none. errors.As finds a Fault in
// the error.
func (f *Faults) Err() error { return errors.Join(f.all...) }

// short formats a duration without trailing zero units: 24h instead of 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
