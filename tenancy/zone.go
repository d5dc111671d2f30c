package tenancy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a time zone database

	"crier/platform/fault"
)

// The range of fixed offsets, in minutes east of UTC.
const (
	minOffset = -12 * 60
	maxOffset = 14 * 60
)

// maxZoneName is the maximum length of a zone name, in bytes. Every IANA name is shorter.
const maxZoneName = 64

const zoneUTC = "UTC"

// The accepted formats of a time zone. Every part of an IANA name begins with a capital letter.
var (
	minutesForm = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]{0,2})$`)
	offsetForm  = regexp.MustCompile(`^([+-])([0-9]{2}):([0-5][0-9])$`)
	nameForm    = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$`)
)

// ZoneRequest is the time zone that a client sent: either a zone or the current offset of the
// client's clock.
type ZoneRequest struct {
	// Name is an IANA name or a fixed offset. It is empty if the client sent no zone.
	Name string
	// Minutes is the offset in minutes east of UTC. It is valid only if IsOffset is true.
	Minutes  int
	IsOffset bool
}

// ParseZone parses an IANA name ("Europe/Berlin"), a fixed offset ("+05:30") or minutes east of UTC
// ("330"). If text is empty, it returns the zero ZoneRequest. For any other text, it returns
// fault.Invalid with a message for the client.
func ParseZone(text string) (ZoneRequest, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return ZoneRequest{}, nil
	}
	if minutesForm.MatchString(text) {
		minutes, err := strconv.Atoi(text)
		if err != nil || minutes < minOffset || minutes > maxOffset {
			return ZoneRequest{}, noZone(text)
		}
		return ZoneRequest{Minutes: minutes, IsOffset: true}, nil
	}
	zone, err := LoadZone(text)
	if err != nil {
		return ZoneRequest{}, err
	}
	return ZoneRequest{Name: zone.String()}, nil
}

// Resolve returns the name of the zone to store for a channel or an organization. organization is
// the name of the organization's zone. If r names a zone, Resolve returns that name. If r is zero,
// or is the offset that the organization's zone has at time now, Resolve returns organization. For
// any other offset, it returns the name of a fixed offset.
func (r ZoneRequest) Resolve(organization string, now time.Time) string {
	if !r.IsOffset {
		if r.Name == "" {
			return organization
		}
		return r.Name
	}
	zone, err := LoadZone(organization)
	if err != nil {
		return FixedZone(r.Minutes)
	}
	if _, offset := now.In(zone).Zone(); offset != r.Minutes*60 {
		return FixedZone(r.Minutes)
	}
	return organization
}

// FixedZone returns the name of a fixed offset in minutes east of UTC: "+05:30", "-03:00", and
// "UTC" for 0.
func FixedZone(minutes int) string {
	if minutes == 0 {
		return zoneUTC
	}
	sign := '+'
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	return fmt.Sprintf("%c%02d:%02d", sign, minutes/60, minutes%60)
}

// LoadZone returns the location for a zone name, which is an IANA name or a fixed offset in the
// format of FixedZone. The location's String method returns the name to store.
//
// LoadZone returns fault.Invalid for an unknown zone. It treats names whose meaning depends on the
// machine ("Local", "localtime", "posixrules") as unknown.
func LoadZone(name string) (*time.Location, error) {
	if fixed := offsetForm.FindStringSubmatch(name); fixed != nil {
		hours, _ := strconv.Atoi(fixed[2]) // offsetForm has matched two digits
		minutes, _ := strconv.Atoi(fixed[3])
		minutes += hours * 60
		if fixed[1] == "-" {
			minutes = -minutes
		}
		if minutes < minOffset || minutes > maxOffset {
			return nil, noZone(name)
		}
		return time.FixedZone(FixedZone(minutes), minutes*60), nil
	}
	if len(name) > maxZoneName || name == "Local" || name == "Factory" || !nameForm.MatchString(name) {
		return nil, noZone(name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, noZone(name)
	}
	return zone, nil
}

func noZone(name string) error {
	return fault.New(fault.Invalid, "tenancy.LoadZone",
		fmt.Sprintf(
			"There is no time zone %.64q: send an IANA name such as Europe/Berlin, or minutes east of UTC.", name))
}
