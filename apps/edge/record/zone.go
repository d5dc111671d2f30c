package record

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/route"
)

// Timezone is a channel's time zone in a request, sent as text or as a number. tenancy.ParseZone
// parses it. Examples: "Europe/Vienna", 60
type Timezone string

// UnmarshalJSON accepts a string or a number. It stores a number as its digits. It returns any
// error from json.Unmarshal.
func (z *Timezone) UnmarshalJSON(data []byte) error { return unmarshalZone(data, (*string)(z)) }

// Schema implements huma.SchemaProvider. huma would otherwise describe only a string.
func (Timezone) Schema(huma.Registry) *huma.Schema {
	return zoneSchema("The channel's time zone: an IANA name, or an offset in minutes east of UTC. Repeated posts " +
		"keep their time of day in this time zone. If the organization's time zone currently has the given offset, " +
		"the channel uses that time zone; otherwise, it uses the fixed offset. An offset does not change the time " +
		"zone of an existing channel. If this field is absent, a new channel has the organization's time zone, and " +
		"an existing channel keeps its own.")
}

// OrganizationZone is an organization's time zone in a request, sent as text or as a number.
// tenancy.ParseZone parses it.
type OrganizationZone string

// UnmarshalJSON accepts a string or a number. It stores a number as its digits. It returns any
// error from json.Unmarshal.
func (z *OrganizationZone) UnmarshalJSON(data []byte) error { return unmarshalZone(data, (*string)(z)) }

// Schema implements huma.SchemaProvider. huma would otherwise describe only a string.
func (OrganizationZone) Schema(huma.Registry) *huma.Schema {
	return zoneSchema("Time zone of the organization: an IANA name, or minutes east of UTC for a fixed offset. Posts " +
		"that are already scheduled keep their times. New channels and reports use the new time zone.")
}

func unmarshalZone(data []byte, to *string) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, to)
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return err
	}
	if whole, ok := route.ParseWhole(number.String()); ok { // including a number written as 60.0
		number = json.Number(strconv.FormatInt(whole, 10))
	}
	*to = number.String()
	return nil
}

func zoneSchema(description string) *huma.Schema {
	longest := 64
	return &huma.Schema{
		OneOf:       []*huma.Schema{{Type: huma.TypeString, MaxLength: &longest}, {Type: huma.TypeInteger}},
		Description: description,
	}
}
