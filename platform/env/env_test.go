package env

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type listen struct {
	Addr    string        `env:"LISTEN, default=:8080" doc:"where to listen"`
	Timeout time.Duration `env:"TIMEOUT, default=30s"`
}

func (l *listen) Validate() error {
	if l.Addr == "nowhere" {
		return Fault{Name: "LISTEN", Message: "must be somewhere"}
	}
	return nil
}

type store struct {
	URL   string   `env:"URL, required" doc:"where it is"`
	Size  int      `env:"SIZE, default=10"`
	Hosts []string `env:"HOSTS, default=a,b"`
}

// Validate has a value receiver, unlike the method of listen.
func (s store) Validate() error {
	if s.Size > 100 {
		return errors.Join(Fault{Name: "SIZE", Message: "is at most 100"}, Fault{Name: "URL", Message: "is far"})
	}
	return nil
}

type whole struct {
	listen2
	Listen listen
	Store  store `env:", prefix=DB_"`
	Deep   *struct {
		Flag bool `env:"FLAG"`
	}
	Ports  []int          `env:"PORTS"`
	Rate   float64        `env:"RATE"`
	Count  uint16         `env:"COUNT"`
	Wait   *time.Duration `env:"WAIT"`
	At     time.Time      `env:"AT"`
	Level  slog.Level     `env:"LEVEL, default=warn"`
	Secret string         `env:"SECRET, required"`
	Same   string         `env:"SECRET, required"`
	Other  string
	hidden int
}

type listen2 struct{ ignored int }

func lookup(m map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestLoad_FillsEveryField(t *testing.T) {
	t.Parallel()
	w := whole{Other: "kept", hidden: 1, listen2: listen2{ignored: 1}}
	err := Load(t.Context(), lookup(map[string]string{
		"DB_URL": "u", "DB_HOSTS": "x,y,z", "URL": "wrong", "FLAG": "true", "PORTS": "1,2", "RATE": "0.5", "COUNT": "7", "WAIT": "1m",
		"AT": "2026-01-02T03:04:05Z", "SECRET": "s", "TIMEOUT": "",
	}), &w)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(w.Listen, w.Store, w.Deep.Flag, w.Ports, w.Rate, w.Count, *w.Wait, w.At.UTC().Hour(), w.Level, w.Secret, w.Same, w.Other)
	if want := "{:8080 30s} {u 10 [x y z]} true [1 2] 0.5 7 1m0s 3 WARN s s kept\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLoad_ReportsEveryFaultByVariable(t *testing.T) {
	t.Parallel()
	var w whole
	err := Load(t.Context(), lookup(map[string]string{
		"LISTEN": "nowhere", "DB_SIZE": "zzbad", "FLAG": "zzbad", "PORTS": "1,zzbad", "RATE": "zzbad", "COUNT": "-1", "WAIT": "zzbad", "AT": "noon", "LEVEL": "loud", "SECRET": "",
	}), &w)
	if err == nil {
		t.Fatal("got no error, want one fault a variable")
	}
	var names []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		name, sentence, ok := strings.Cut(line, ": ")
		if !ok || sentence == "" {
			t.Errorf("got line %q, want NAME: sentence", line)
		}
		names = append(names, name)
	}
	want := []string{"LISTEN", "DB_URL", "DB_SIZE", "FLAG", "PORTS", "RATE", "COUNT", "WAIT", "AT", "LEVEL", "SECRET"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v\nwant %v\n%v", names, want, err)
	}
	if strings.Contains(err.Error(), "zzbad") {
		t.Errorf("got an error that shows a value: %v", err)
	}
	if f := (Fault{}); !errors.As(err, &f) || f.Name != "LISTEN" {
		t.Errorf("errors.As: got %+v, want the fault of LISTEN", f)
	}
	t.Log("\n" + err.Error())
}

func TestLoad_DropsValidateFaultsOfUnreadableVariables(t *testing.T) {
	t.Parallel()
	var s store
	err := Load(t.Context(), lookup(map[string]string{"URL": "u", "SIZE": "101"}), &s)
	if want := "SIZE: is at most 100\nURL: is far"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = Load(t.Context(), lookup(map[string]string{"SIZE": "101"}), &store{})
	if want := "URL: is required\nSIZE: is at most 100"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLoad_RefusesInvalidTargets(t *testing.T) {
	t.Parallel()
	for _, dst := range []any{
		nil, whole{}, new(int), (*store)(nil),
		&struct {
			A string `env:""`
		}{},
		&struct {
			a string `env:"A"`
		}{},
		&struct {
			A string `env:"A, requierd"`
		}{},
		&struct {
			A string `env:"A, required, default=x"`
		}{},
	} {
		if err := Load(t.Context(), lookup(nil), dst); err == nil {
			t.Errorf("%T: got no error, want one", dst)
		}
	}
}

func TestLookup_OverlaysRankFlagsEnvironmentDefaults(t *testing.T) {
	t.Parallel()
	l := With(Defaults(lookup(map[string]string{"A": "env", "B": "env", "C": ""}), map[string]string{"B": "dev", "C": "dev", "D": "dev"}),
		map[string]string{"A": "flag", "B": ""})
	for name, want := range map[string]string{"A": "flag", "B": "env", "C": "dev", "D": "dev", "E": ""} {
		if got, _ := l(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestNames_ListsEachVariableOnce(t *testing.T) {
	t.Parallel()
	got := Names(&whole{})
	want := []Var{
		{Name: "LISTEN", Default: ":8080", Doc: "where to listen"}, {Name: "TIMEOUT", Default: "30s"},
		{Name: "DB_URL", Required: true, Doc: "where it is"}, {Name: "DB_SIZE", Default: "10"},
		{Name: "DB_HOSTS", Default: "a,b"}, {Name: "FLAG"}, {Name: "PORTS"}, {Name: "RATE"}, {Name: "COUNT"},
		{Name: "WAIT"}, {Name: "AT"}, {Name: "LEVEL", Default: "warn"}, {Name: "SECRET", Required: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if Names(3) != nil || Names(nil) != nil {
		t.Error("got names for a dst that is not a struct, want nil")
	}
}

func TestOS_ReadsEnvironment(t *testing.T) {
	t.Setenv("CRIER_ENV_TEST", "here")
	if v, ok := OS()("CRIER_ENV_TEST"); !ok || v != "here" {
		t.Errorf("got %q, %t, want here", v, ok)
	}
}
