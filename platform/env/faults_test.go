package env

import (
	"errors"
	"testing"
	"time"
)

func TestFaults_NameVariableAndBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check func(*Faults)
		want  string
	}{
		"the least number":       {check: func(f *Faults) { f.Number("N", 1, 1, 9) }, want: ""},
		"the largest number":     {check: func(f *Faults) { f.Number("N", 9, 1, 9) }, want: ""},
		"a number too small":     {check: func(f *Faults) { f.Number("N", 0, 1, 9) }, want: "N: must be a whole number from 1 to 9"},
		"a number too large":     {check: func(f *Faults) { f.Number("N", 10, 1, 9) }, want: "N: must be a whole number from 1 to 9"},
		"the shortest duration":  {check: func(f *Faults) { f.Duration("D", 0, 0, time.Hour) }, want: ""},
		"the longest duration":   {check: func(f *Faults) { f.Duration("D", time.Hour, 0, time.Hour) }, want: ""},
		"a duration below zero":  {check: func(f *Faults) { f.Duration("D", -1, 0, time.Hour) }, want: "D: must be a duration from 0s to 1h"},
		"a duration too long":    {check: func(f *Faults) { f.Duration("D", 61*time.Second, time.Millisecond, time.Minute) }, want: "D: must be a duration from 1ms to 1m"},
		"bounds with two units":  {check: func(f *Faults) { f.Duration("D", 0, 90*time.Second, 90*time.Minute) }, want: "D: must be a duration from 1m30s to 1h30m"},
		"all faults in one text": {check: func(f *Faults) { f.Add("A", "is required"); f.Number("N", 0, 1, 9) }, want: "A: is required\nN: must be a whole number from 1 to 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f Faults
			c.check(&f)
			got := ""
			if err := f.Err(); err != nil {
				got = err.Error()
				if fault := (Fault{}); !errors.As(err, &fault) {
					t.Errorf("got %T, want a Fault in it", err)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
