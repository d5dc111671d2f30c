package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/publishing"
	"crier/tenancy"
)

// connects connects an account of the sandbox as the dashboard does, with a time zone in the body, and returns the
// answer.
func (o org) connects(t *testing.T, account string, timezone any) answer {
	t.Helper()
	state, err := o.app.Channels.Begin(t.Context(), o.who, publishing.BeginConnect{Connector: "sandbox"})
	if err != nil {
		t.Fatal(err)
	}
	body := m{"state": state, "code": code(t, o.sandbox, account, "A")}
	if timezone != nil {
		body["timezone"] = timezone
	}
	person := o
	person.prefix, person.key = "", ""
	a := person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body)
	if a.Status == http.StatusBadRequest { // a refusal uses nothing up
		delete(body, "timezone")
		person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body).want(t, http.StatusCreated)
	}
	return a
}

// zone connects a new account, or an old one again, and returns the channel's id and time zone.
func (o org) zone(t *testing.T, account string, timezone any) (id, zone string) {
	t.Helper()
	got := o.connects(t, account, timezone).want(t, http.StatusCreated).object(t)
	return got["id"].(string), got["timezone"].(string)
}

func (o org) account() string { return fmt.Sprintf("zone-%d", o.names.Add(1)) }

func TestZones(t *testing.T) {
	t.Parallel()
	r := start(t, nil)

	t.Run("nine in Berlin stays nine when the clocks change", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		channel, _ := o.zone(t, o.account(), "Europe/Berlin")
		begin := time.Date(2040, 3, 24, 8, 0, 0, 0, time.UTC) // nine; the clocks go forward on the 25th
		id := o.create(t, repeating(request("schedule", begin, entry(channel, part("at nine"))), m{"inter": 1}))
		shown := func() (got []string) {
			for _, v := range o.between(t, begin, begin.Add(72*time.Hour)) {
				got = append(got, v["date"].(string))
			}
			return got
		}
		want := "[2040-03-24T08:00:00.000Z 2040-03-25T07:00:00.000Z 2040-03-26T07:00:00.000Z 2040-03-27T07:00:00.000Z]"
		if got := fmt.Sprint(shown()); got != want {
			t.Fatalf("listed are %s, want %s", got, want)
		}
		// The next occurrence is stored with the time that was listed.
		next := o.between(t, begin, begin.Add(24*time.Hour))[1]
		o.do(t, http.MethodDelete, "/posts/"+id, nil).want(t, http.StatusOK)
		stored := o.get(t, "/posts/"+next["id"].(string)).want(t, http.StatusOK).object(t)
		if stored["date"] != "2040-03-25T07:00:00.000Z" || stored["actualDate"] != nil || stored["id"] != next["id"] {
			t.Errorf("the next one is %v", stored)
		}
	})
	t.Run("a name is the channel's zone", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		if _, zone := o.zone(t, o.account(), "Asia/Kolkata"); zone != "Asia/Kolkata" {
			t.Errorf("the zone is %s", zone)
		}
	})
	t.Run("minutes are a fixed offset", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		for sent, want := range map[any]string{"330": "+05:30", 330: "+05:30", "-210": "-03:30", "0": "UTC", "+05:45": "+05:45", "": "UTC", nil: "UTC"} {
			if _, zone := o.zone(t, o.account(), sent); zone != want {
				t.Errorf("%v of type %T is the zone %s, want %s", sent, sent, zone, want)
			}
		}
	})
	t.Run("minutes that the organization's clocks show are its zone", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		if zone, err := o.app.Accounts.SetTimezone(t.Context(), o.who, tenancy.ZoneRequest{Name: "Asia/Tokyo"}); err != nil || zone != "Asia/Tokyo" {
			t.Fatal(zone, err)
		}
		for sent, want := range map[string]string{"540": "Asia/Tokyo", "539": "+08:59", "": "Asia/Tokyo", "UTC": "UTC"} {
			if _, zone := o.zone(t, o.account(), sent); zone != want {
				t.Errorf("%q is the zone %s, want %s", sent, zone, want)
			}
		}
	})
	t.Run("a channel that is connected again keeps its zone unless one is named", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		account := o.account()
		first, _ := o.zone(t, account, "Europe/Berlin")
		for _, c := range []struct {
			sent any
			want string
		}{{nil, "Europe/Berlin"}, {"", "Europe/Berlin"}, {"330", "Europe/Berlin"}, {"0", "Europe/Berlin"}, {"Asia/Tokyo", "Asia/Tokyo"}, {"60", "Asia/Tokyo"}} {
			if id, zone := o.zone(t, account, c.sent); zone != c.want || id != first {
				t.Errorf("after %v the zone of %s is %s, want %s of %s", c.sent, id, zone, c.want, first)
			}
		}
	})
	t.Run("an invalid zone is refused, and the state can be used again", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		for _, sent := range []any{"Mars/Olympus", "europe/berlin", "Local", "../../etc/passwd", "900", "-721", 900, "5.5", "NaN", "Europe/Berlin\x00", strings.Repeat("A/", 40)} {
			if msg := o.connects(t, o.account(), sent).refusal(t, http.StatusBadRequest); !strings.Contains(msg, "zone") {
				t.Errorf("%v is refused with %s", sent, msg)
			}
		}
		for _, sent := range []any{5.5, true, m{}, []any{}} {
			o.connects(t, o.account(), sent).refusal(t, http.StatusBadRequest)
		}
	})
}
