package tenancy_test

import (
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

func TestLoadZone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Europe/Berlin": "Europe/Berlin", "UTC": "UTC", "EST5EDT": "EST5EDT", "Etc/GMT+5": "Etc/GMT+5", "NZ-CHAT": "NZ-CHAT",
		"America/Argentina/Buenos_Aires": "America/Argentina/Buenos_Aires", "America/Port-au-Prince": "America/Port-au-Prince",
		"+05:30": "+05:30", "-03:00": "-03:00", "+00:00": "UTC", "-12:00": "-12:00", "+14:00": "+14:00", "-00:30": "-00:30",
	} {
		zone, err := tenancy.LoadZone(name)
		if err != nil {
			t.Errorf("%s: got the error %v, want a zone", name, err)
			continue
		}
		if zone.String() != want {
			t.Errorf("%s is loaded as %s, want %s", name, zone, want)
		}
	}
	for _, name := range []string{
		"", "Local", "localtime", "posixrules", "Factory", "posix/Europe/Berlin", "right/UTC", "Mars/Olympus", "europe/berlin", "../etc/passwd", "/etc/localtime",
		"Europe/../UTC", "Europe/Berlin\x00", "+14:01", "-12:30", "+5:30", "+05:60", "UTC+05:30", "+0530", strings.Repeat("A", 65),
	} {
		if zone, err := tenancy.LoadZone(name); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q is loaded as %v with error %v, want Invalid", name, zone, err)
		}
	}
}

func TestParseZone(t *testing.T) {
	t.Parallel()
	summer, winter := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, text, organization string
		now                      time.Time
		want                     string
	}{
		{name: "an empty text is the organization's zone", organization: "Europe/Berlin", now: summer, want: "Europe/Berlin"},
		{name: "a name is kept", text: "Asia/Kolkata", organization: "Europe/Berlin", now: summer, want: "Asia/Kolkata"},
		{name: "a fixed offset is kept", text: "+05:30", organization: "Europe/Berlin", now: summer, want: "+05:30"},
		{name: "minutes of the organization's zone are that zone", text: "120", organization: "Europe/Berlin", now: summer, want: "Europe/Berlin"},
		{name: "minutes are compared with the offset at the time", text: "120", organization: "Europe/Berlin", now: winter, want: "+02:00"},
		{name: "other minutes are a fixed offset", text: "330", organization: "Europe/Berlin", now: summer, want: "+05:30"},
		{name: "minutes to the west are negative", text: "-210", organization: "UTC", now: summer, want: "-03:30"},
		{name: "minutes may have a plus sign", text: "+60", organization: "UTC", now: summer, want: "+01:00"},
		{name: "zero minutes are UTC", text: "0", organization: "Europe/Berlin", now: summer, want: "UTC"},
		{
			name: "zero minutes are an organization's zone with that offset", text: "0",
			organization: "Europe/London", now: winter,
			want: "Europe/London",
		},
		{name: "an organization's zone may be a fixed offset", text: "330", organization: "+05:30", now: summer, want: "+05:30"},
		{name: "an unknown organization's zone matches nothing", text: "60", organization: "Mars/Olympus", now: summer, want: "+01:00"},
		{name: "spaces around a name are ignored", text: " Europe/Paris ", organization: "UTC", now: summer, want: "Europe/Paris"},
	} {
		asked, err := tenancy.ParseZone(c.text)
		if err != nil {
			t.Errorf("%s: got the error %v, want a zone", c.name, err)
			continue
		}
		if got := asked.Resolve(c.organization, c.now); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	for _, text := range []string{"841", "-721", "1e2", "5.5", "Berlin time", "undefined", "NaN", "+0530", "99999999999999999999"} {
		if got, err := tenancy.ParseZone(text); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q is parsed as %+v with error %v, want Invalid", text, got, err)
		}
	}
}
