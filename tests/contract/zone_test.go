package contract

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/publishing"
	"crier/tenancy"
)

// connects connects a sandbox account as the dashboard does, with a time zone in the body, and
// returns the response.
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
	if a.Status == http.StatusBadRequest { // a refusal does not use up the state
		delete(body, "timezone")
		person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body).want(t, http.StatusCreated)
	}
	return a
}

// zone connects an account, new or known, and returns the channel's id and time zone.
func (o org) zone(t *testing.T, account string, timezone any) (id, zone string) {
	t.Helper()
	got := read[channelRecord](t, o.connects(t, account, timezone).want(t, http.StatusCreated))
	return got.ID, got.Timezone
}

func (o org) account() string { return fmt.Sprintf("zone-%d", o.names.Add(1)) }

func TestZones(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"occurrences keep their time of day": testTimeOfDay,
		"of a channel":                       testChannelZone,
		"an invalid zone is refused, and the state can be used again": testInvalidZone,
	})
}

func testTimeOfDay(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	id, _ := o.zone(t, o.account(), "Europe/Berlin")
	// 9:00 in Berlin, where clocks go forward on the 25th.
	nine := time.Date(2040, 3, 24, 8, 0, 0, 0, time.UTC)
	post := o.create(t, repeating(request("schedule", nine, entry(id, part("at nine"))), m{"inter": 1}))
	list := o.between(t, nine, nine.Add(3*day))
	var got []string
	for _, v := range list {
		got = append(got, v.Date)
	}
	want := []string{
		"2040-03-24T08:00:00.000Z", "2040-03-25T07:00:00.000Z", "2040-03-26T07:00:00.000Z", "2040-03-27T07:00:00.000Z",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("listed are %s, want %s", got, want)
	}
	// The next occurrence is stored with the listed time.
	o.deletes(t, "/posts/", post)
	if stored := o.post(t, list[1].ID); stored.Date != want[1] || stored.ActualDate != "" || stored.ID != list[1].ID {
		t.Errorf("the next occurrence is %+v, want %s stored at %s", stored, list[1].ID, want[1])
	}
}

func testChannelZone(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("a name is the channel's zone", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		if _, zone := o.zone(t, o.account(), "Asia/Kolkata"); zone != "Asia/Kolkata" {
			t.Errorf("the zone is %s, want Asia/Kolkata", zone)
		}
	})
	t.Run("minutes are a fixed offset", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		for sent, want := range map[any]string{
			"330": "+05:30", 330: "+05:30", "-210": "-03:30", "0": "UTC", "+05:45": "+05:45", "": "UTC", nil: "UTC",
		} {
			if _, zone := o.zone(t, o.account(), sent); zone != want {
				t.Errorf("%v of type %T is the zone %s, want %s", sent, sent, zone, want)
			}
		}
	})
	t.Run("minutes that the organization's clocks show are its zone", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		change := tenancy.OrganizationChange{Timezone: &tenancy.ZoneRequest{Name: "Asia/Tokyo"}}
		if _, err := o.app.Accounts.UpdateOrganization(t.Context(), o.who, change); err != nil {
			t.Fatal(err)
		}
		for sent, want := range map[string]string{"540": "Asia/Tokyo", "539": "+08:59", "": "Asia/Tokyo", "UTC": "UTC"} {
			if _, zone := o.zone(t, o.account(), sent); zone != want {
				t.Errorf("%q is the zone %s, want %s", sent, zone, want)
			}
		}
	})
	t.Run("a channel that is reconnected keeps its zone unless another is named", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		account := o.account()
		first, _ := o.zone(t, account, "Europe/Berlin")
		const berlin, tokyo = "Europe/Berlin", "Asia/Tokyo"
		for _, c := range []struct {
			sent any
			want string
		}{
			{sent: nil, want: berlin}, {sent: "", want: berlin}, {sent: "330", want: berlin}, {sent: "0", want: berlin},
			{sent: tokyo, want: tokyo}, {sent: "60", want: tokyo},
		} {
			if id, zone := o.zone(t, account, c.sent); zone != c.want || id != first {
				t.Errorf("after %v the zone of %s is %s, want %s of %s", c.sent, id, zone, c.want, first)
			}
		}
	})
}

func testInvalidZone(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	for _, sent := range []any{
		"Mars/Olympus", "europe/berlin", "Local", "../../etc/passwd", "900", "-721", 900, "5.5", "NaN",
		"Europe/Berlin\x00", strings.Repeat("A/", 40),
	} {
		if msg := o.connects(t, o.account(), sent).refusal(t, http.StatusBadRequest); !strings.Contains(msg, "zone") {
			t.Errorf("%v is refused with %q, want it to name the zone", sent, msg)
		}
	}
	for _, sent := range []any{5.5, true, m{}, []any{}} {
		o.connects(t, o.account(), sent).refusal(t, http.StatusBadRequest)
	}
}
