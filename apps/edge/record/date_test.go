package record_test

import (
	"net/url"
	"testing"
	"time"

	"crier/apps/edge/record"
	"crier/tests/edgetest"
)

func TestParseDate_AcceptsOtherISOForms(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"2026-W48-5T10:00:00Z":      "2026-11-27T10:00:00Z",
		"2026W485T100000Z":          "2026-11-27T10:00:00Z",
		"2026-w48-5":                "2026-11-27T00:00:00Z",
		"2020-W53-7T12:00+02:00":    "2021-01-03T10:00:00Z",
		"2026-W53-7":                "2027-01-03T00:00:00Z",
		"2027-W53-1":                "", // 2027 has 52 weeks
		"2026-W00-1":                "",
		"2026-W48-8":                "",
		"2026-331T10:00:00Z":        "2026-11-27T10:00:00Z",
		"2026331":                   "2026-11-27T00:00:00Z",
		"2024-366":                  "2024-12-31T00:00:00Z",
		"2026-366":                  "",
		"2026-000":                  "",
		"2026-11-27T24:00:00Z":      "2026-11-28T00:00:00Z",
		"2026-12-31T24:00":          "2027-01-01T00:00:00Z",
		"20261231T240000Z":          "2027-01-01T00:00:00Z",
		"2026-11-27T24:00:00+02:00": "2026-11-27T22:00:00Z",
		"2026-W48-5T24:00":          "2026-11-28T00:00:00Z",
		"2026-11-27T24:01:00Z":      "",
		"2026-11-27T24:00:01Z":      "",
		"9999-12-31T24:00:00Z":      "",
		"2026-11-27T10:00:00+23:59": "2026-11-26T10:01:00Z",
		"2026-11-27T10:00:00+24:00": "",
		"2026-11-27T10:00:00-24:00": "",
		"2026-11-27T24:00:00 02:00": "2026-11-27T22:00:00Z", // the query decoded + to a space
		// Forms that Java, JavaScript and clipboards produce.
		"2026-11-27T10:00+01:00[Europe/Berlin]":                  "2026-11-27T09:00:00Z",
		"2026-11-27T10:00:00+01:00[!Europe/Berlin][u-ca=hebrew]": "2026-11-27T09:00:00Z",
		"2026-11-27T10:00:00.5Z[Europe/Berlin]":                  "2026-11-27T10:00:00Z",
		"2026-11-27T10:00:00+01:00[+01:00]":                      "2026-11-27T09:00:00Z",
		"2026-10-25T24:00+01:00[Europe/Berlin]":                  "2026-10-25T23:00:00Z", // the day that summer time ends
		"2026-11-27T10:00:00Z[u-ca=gregory]":                     "2026-11-27T10:00:00Z",
		"\u202a2026\u201311\u201327T10:00:00\u221201:00\u202c\n": "2026-11-27T11:00:00Z",
		"2026-11-27\u00a010:00":                                  "2026-11-27T10:00:00Z",
		"2016-12-31T23:59:60Z":                                   "2017-01-01T00:00:00Z",
		"2016-12-31T18:59:60.9-05:00":                            "2017-01-01T00:00:00Z",
		"20161231T235960Z":                                       "2017-01-01T00:00:00Z",
		"2016-12-31T23:58:60Z":                                   "",
	} {
		got, ok := record.ParseDate(sent)
		if ok != (want != "") || ok && got.Format(time.RFC3339) != want {
			t.Errorf("%s: got %v, %v, want %q", sent, got, ok, want)
		}
	}
}

func TestDateRule_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const form = "must be an ISO 8601 date, for example 2026-01-02T15:04:05Z"
	for sent, want := range map[string]string{
		"2026-01-02T15:04:05Z":                  "",
		"":                                      form,
		"yesterday":                             form,
		"03/01/2040 9:30 AM":                    form,
		"Thu, 01 Mar 2040 09:30:00 GMT":         form,
		"2214900000000":                         form + ", not a number of seconds or milliseconds",
		"2040-02-30T09:30:00Z":                  "must be a valid date and time: the day is out of range",
		"2040-13-01":                            "must be a valid date and time: the month is out of range",
		"2040-02-01T25:00:00Z":                  "must be a valid date and time: the hour is out of range",
		"2040-02-01T10:00:75+05:30":             "must be a valid date and time: the second is out of range",
		"2026-366":                              "must be a valid date and time: the day is out of range",
		"2027-W53-1":                            "must be a valid date and time: the week is out of range",
		"2040-02-01T10:00:00+24:00":             "must have an offset of less than 24 hours",
		"2040-03-01T09:30[Europe/Berlin]":       "must have an offset before the time zone in brackets, for example 2026-01-02T15:04:05+01:00[Europe/Berlin]",
		"2040-03-01T09:30+02:00[Europe/Berlin]": "must have the offset that the time zone in brackets has on that date",
		"2040-03-01T09:30+01:00[Mars/Base]":     "must name an existing time zone in brackets, for example [Europe/Berlin]",
	} {
		if got := record.DateRule(sent); got != want {
			t.Errorf("%s: got %q, want %q", sent, got, want)
		}
	}
}

func TestParseDate_AcceptsSpaceForPlus(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 22, 30, 0, 0, time.UTC)
	for _, s := range []string{"2026-01-02T00:30:00+02:00", "2026-01-02T00:30:00 02:00", "2026-01-02 00:30:00 02:00", "2026-01-02T00:30:00 0200"} {
		if got, ok := record.ParseDate(s); !ok || !got.Equal(at) {
			t.Errorf("%s: got %v, %v, want %v", s, got, ok, at)
		}
	}
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/posts?startDate=2026-01-02T00:30:00+02:00&endDate="+url.QueryEscape("2026-01-03T00:30:00+02:00"), ""), 200)
	if len(s.Lists) != 1 || !s.Lists[0].Start.Equal(at) {
		t.Errorf("got the queries %+v, want one from %v", s.Lists, at)
	}
}

func FuzzDate(f *testing.F) {
	for _, seed := range []string{
		"2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05", "2026-01-02", "2026-01-02T03:04+05:30", "2026-01-02 03:04",
		"9999-12-31T23:59:59-23:59", "2026-01-02T03:04:05 02:00", "2026-01-02 03:04:05 0200", "0000-01-01", "",
		"tomorrow", "2026-02-30",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := record.ParseDate(s)
		if !ok && !at.IsZero() {
			t.Errorf("%q: a refused date has a value", s)
		}
		if ok {
			again, ok := record.ParseDate(at.Format("2006-01-02T15:04:05.999999999Z"))
			if y := at.Year(); y >= 0 && y <= 9999 && (!ok || !again.Equal(at)) {
				t.Errorf("%q is %v, and that is %v", s, at, again)
			}
		}
	})
}

func TestHasOffset(t *testing.T) {
	t.Parallel()
	for date, want := range map[string]bool{
		"2026-01-02T15:04:05Z": true, "2026-01-02t15:04z": true, "2026-01-02T15:04:05+01:00": true, "20260102T150405+01": true,
		"2026-01-02 15:04:05-0330": true, "2026-01-02T15:04:05+01:00[Europe/Berlin]": true, "2026-W01-5T10:00−0200": true,
		"2026-01-02": false, "2026-01-02T15:04:05": false, "20260102T150405": false, "2026-01-02 15:04": false, "": false,
	} {
		if got := record.HasOffset(date); got != want {
			t.Errorf("%q has an offset: got %v, want %v", date, got, want)
		}
	}
}
