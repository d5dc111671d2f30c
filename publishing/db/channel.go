package db

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/tenancy"
)

// channelRow is a row of the channel table. It has the same fields as publishing.Channel, each
// tagged with its column. Fields without a column are read from other tables.
type channelRow struct {
	ID            publishing.ChannelID `db:"id"`
	Org           tenancy.OrgID        `db:"org_id"`
	Connector     string               `db:"connector"`
	Name          string               `db:"name"`
	Profile       string               `db:"profile"`
	Picture       string               `db:"picture"`
	AccountID     string               `db:"account_id"`
	Account       json.RawMessage      `db:"account"`
	Grade         publishing.Grade     `db:"grade"`
	Customer      *publishing.Customer `db:"-"`
	Disabled      bool                 `db:"disabled"`
	RefreshNeeded bool                 `db:"refresh_needed"`
	RefreshReason string               `db:"refresh_problem"`
	AppID         string               `db:"app_id"`
	Timezone      string               `db:"timezone"`
	Destination   string               `db:"-"`
	CreatedAt     time.Time            `db:"created_at"`
	ConnectedAt   time.Time            `db:"connected_at"`
}

type ListedChannel struct {
	channelRow
	CustomerID   publishing.CustomerID `db:"customer_id"`
	CustomerName *string               `db:"customer_name" sql:"u.name"`
}

var ChannelColumns = Columns[ListedChannel]("c")

func ScanChannel(row pgx.CollectableRow) (publishing.Channel, error) {
	r, err := pgx.RowToStructByName[ListedChannel](row)
	return r.channel(), err
}

func (r ListedChannel) channel() publishing.Channel {
	c := publishing.Channel(r.channelRow)
	if r.CustomerName != nil {
		c.Customer = &publishing.Customer{ID: r.CustomerID, Name: *r.CustomerName}
	}
	return c
}

// Access is a channel with its sealed credential.
type Access struct {
	Channel    publishing.Channel
	Credential []byte
	// Destination holds the hosts that may be called (see connector.Destination), or the connector
	// if no host is known. Example: bsky.social,pds.example.com
	Destination string
}

type AccessRow struct {
	ListedChannel
	Credential  []byte `db:"credential"`
	Destination string `db:"destination" sql:"coalesce(nullif(q.destination, ''), c.connector)"`
}

func (r AccessRow) Access() Access {
	return Access{Channel: r.channel(), Credential: r.Credential, Destination: r.Destination}
}

var ChannelAccess = `-- publishing.ChannelAccess
select ` + Columns[AccessRow]("c") + `
from channel c
left join customer u on u.org_id = c.org_id and u.id = c.customer_id
left join channel_queue q on q.org_id = c.org_id and q.channel_id = c.id
where c.id = $1 and c.deleted_at is null`

// StoredTime is an element of channel.queue_plan.
type StoredTime struct {
	Minute int                 `json:"minute"`
	Days   publishing.Weekdays `json:"days"`
}

func StoredTimes(times []publishing.QueueTime) []StoredTime {
	out := make([]StoredTime, len(times)) // never nil, which would be the JSON null
	for i, t := range times {
		out[i] = StoredTime(t)
	}
	return out
}
