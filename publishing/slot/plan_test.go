package slot_test

import (
	"slices"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/tenancy"
	"crier/tests/fixture"
)

// minutes returns the posting times of a plan as minutes.
func minutes(p publishing.ChannelPlan) (out []int) {
	for _, t := range p.Times {
		out = append(out, t.Minute)
	}
	return out
}

func every(minutes ...int) (out []publishing.QueueTime) {
	for _, m := range minutes {
		out = append(out, publishing.QueueTime{Minute: m, Days: publishing.EveryDay})
	}
	return out
}

func TestSetPlan(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	c := r.channel()
	set := func(cmd publishing.SetQueuePlan, zone string, want ...int) {
		t.Helper()
		got, err := r.slots.SetPlan(t.Context(), r.who, c, cmd)
		r.OK(err)
		read, err := r.slots.Plan(t.Context(), r.who, c)
		r.OK(err)
		for name, p := range map[string]publishing.ChannelPlan{"set": got, "read": read} {
			if p.Timezone != zone || !slices.Equal(minutes(p), want) {
				t.Errorf("the plan that is %s is %v in %s, want %v in %s", name, minutes(p), p.Timezone, want, zone)
			}
			if next := min(len(want), 1) * publishing.NextSlots; len(p.Next) != next {
				t.Errorf("the plan that is %s has %d next slots, want %d", name, len(p.Next), next)
			}
		}
	}
	set(publishing.SetQueuePlan{Times: every(700, 60)}, "UTC", 60, 700)
	set(publishing.SetQueuePlan{Times: every(60), Zone: tenancy.ZoneRequest{Name: "Asia/Tokyo"}}, "Asia/Tokyo", 60)
	set(publishing.SetQueuePlan{Times: every(90)}, "Asia/Tokyo", 90)
	set(publishing.SetQueuePlan{Times: every(0, 1439), UTC: true}, "Asia/Tokyo", 539, 540)
	set(publishing.SetQueuePlan{Times: every(1), Zone: tenancy.ZoneRequest{IsOffset: true, Minutes: 540}}, "Asia/Tokyo", 1)
	set(publishing.SetQueuePlan{Times: every(1), Zone: tenancy.ZoneRequest{IsOffset: true, Minutes: 330}}, "+05:30", 1)
	set(publishing.SetQueuePlan{}, "+05:30")

	r.Tenant(r.who.Org, `update channel set timezone = 'Mars/Olympus' where id = $1`, c)
	if p, err := r.slots.Plan(t.Context(), r.who, c); err != nil || p.Timezone != "Mars/Olympus" || len(p.Next) != 0 {
		t.Errorf("in an unknown zone: got %+v, %v; want no next slots", p, err)
	}
	if _, err := r.slots.SetPlan(t.Context(), r.who, c, publishing.SetQueuePlan{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("in an unknown zone: got the error %v, want Invalid", err)
	}
	set(publishing.SetQueuePlan{Times: every(5), Zone: tenancy.ZoneRequest{Name: "UTC"}}, "UTC", 5)
}

func TestSetPlan_RefusesAgents(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	agent := r.who
	agent.Via, agent.Agent = tenancy.ViaAgent, tenancy.Agent{ID: id.New[tenancy.AgentTag](), Write: true}
	_, err := r.slots.SetPlan(t.Context(), agent, r.channel(), publishing.SetQueuePlan{Times: every(60)})
	if !fault.Is(err, fault.Forbidden) {
		t.Errorf("got %v, want Forbidden", err)
	}
}

func TestPlan_UnknownChannelIsNotFound(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	c, stranger := r.channel(0), r.Organization()
	gone := r.channel(0)
	parsed, _ := id.Parse[publishing.ChannelTag](gone)
	r.Tenant(r.who.Org, `update channel set deleted_at = now(), credential = null where id = $1`, parsed)
	for name, ask := range map[string]struct {
		who     tenancy.Principal
		channel string
	}{
		"of another organization": {who: stranger, channel: c}, "that is disconnected": {who: r.who, channel: gone},
		"that does not exist": {who: r.who, channel: id.New[publishing.ChannelTag]().String()}, "with another id": {who: r.who, channel: "x"},
	} {
		if _, err := r.slots.Plan(t.Context(), ask.who, ask.channel); !fault.Is(err, fault.NotFound) {
			t.Errorf("the plan of a channel %s: got the error %v, want NotFound", name, err)
		}
		if _, err := r.slots.SetPlan(t.Context(), ask.who, ask.channel, publishing.SetQueuePlan{}); !fault.Is(err, fault.NotFound) {
			t.Errorf("a new plan of a channel %s: got the error %v, want NotFound", name, err)
		}
	}
	if p, err := r.slots.Plan(t.Context(), r.who, c); err != nil || len(p.Times) != 1 {
		t.Errorf("the plan of the channel is %+v, %v; want it as it was", p, err)
	}
	tooMany := publishing.SetQueuePlan{Times: make([]publishing.QueueTime, publishing.MaxQueueTimes+1)}
	if _, err := r.slots.SetPlan(t.Context(), r.who, c, tooMany); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many times: got the error %v, want Invalid", err)
	}
}

// TestPlan_NewChannelHasDefaultTimes checks that a new channel's plan follows from the zone that
// the connect sends, or else from the zone of the organization. Reconnecting changes only the zone.
func TestPlan_NewChannelHasDefaultTimes(t *testing.T) {
	t.Parallel()
	morning, night := []int{560, 850, 1140}, []int{120, 400, 700}
	for _, c := range []struct {
		name, sent, organization, zone string
		want                           []int
	}{
		{name: "nobody has chosen a zone", organization: "UTC", zone: "UTC", want: night},
		{name: "a zone is sent", sent: "Asia/Tokyo", organization: "UTC", zone: "Asia/Tokyo", want: morning},
		{name: "UTC is sent", sent: "UTC", organization: "UTC", zone: "UTC", want: morning},
		{name: "the organization has a zone", organization: "Europe/Berlin", zone: "Europe/Berlin", want: morning},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newSlotRig(t)
			r.Tenant(r.who.Org, `update organization set timezone = $1`, c.organization)
			channel := fixture.Channel(r.who.Org)
			channel.Timezone = c.sent
			for range 2 {
				stored, _, err := channelstore.ConnectChannel(t.Context(), r.Store, channel, []byte("sealed"), nil, nil)
				r.OK(err)
				p, err := r.slots.Plan(t.Context(), r.who, stored.ID.String())
				r.OK(err)
				if p.Timezone != c.zone || !slices.Equal(minutes(p), c.want) {
					t.Errorf("the plan is %v in %s, want %v in %s", minutes(p), p.Timezone, c.want, c.zone)
				}
				channel.Timezone = "Pacific/Auckland"
				c.zone = channel.Timezone
			}
			if p, err := r.slots.Plan(t.Context(), r.who, channel.ID.String()); err != nil || p.Next[0].Before(time.Now()) {
				t.Errorf("the next slots are %v, %v; want those after now", p.Next, err)
			}
		})
	}
}
