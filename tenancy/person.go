package tenancy

import "time"

// Person is a user account. A person can be a member of several organizations.
type Person struct {
	ID PersonID `db:"id"`
	// Email is in lower case and unique.
	Email string `db:"email"`
	Name  string `db:"name"`
	Bio   string `db:"bio"`
	// Picture is zero if the person has no picture.
	Picture Picture `db:"-"`
	// PasswordHash is an argon2id hash in PHC format. It is empty if the person signs in only
	// through an identity provider.
	PasswordHash string `db:"password_hash"`
	// Verified means that the person has followed a link emailed to the address.
	Verified bool `db:"verified"`
	// Instance means that the person is an administrator of the instance.
	Instance bool `db:"instance_admin"`
	// DeletedAt is when the account's deletion was requested, or nil.
	DeletedAt *time.Time `db:"deleted_at"`
	// CreatedAt is in UTC, like all times in the service.
	CreatedAt time.Time `db:"created_at"`
}

// Picture is a person's uploaded picture.
type Picture struct {
	// ID is the media item's id.
	ID string
	// Path is the picture's public URL.
	Path string
}

// Profile holds the information that a person publishes about themselves.
type Profile struct {
	Name, Bio string
	// Picture replaces the stored picture; the zero Picture removes it.
	Picture Picture
}

// Delivery says how a kind of notification is delivered.
type Delivery string

// The ways to deliver notifications. The bell is the list of notifications in the dashboard. It
// also shows all notifications that are emailed.
const (
	DeliveryMail Delivery = "mail"
	DeliveryBell Delivery = "bell"
	DeliveryOff  Delivery = "off"
)

// Valid reports whether the delivery is one of the constants.
func (d Delivery) Valid() bool { return d == DeliveryMail || d == DeliveryBell || d == DeliveryOff }

// Notifications holds a person's notification settings. It is stored as JSON.
type Notifications struct {
	Success bool `json:"success"`
	Failure bool `json:"failure"`
	// Digest is the weekly summary, which the API calls streak. Digest, Comment and Billing are not
	// used yet.
	Digest   bool     `json:"digest"`
	Approval Delivery `json:"approval"`
	Comment  Delivery `json:"comment"`
	Channel  Delivery `json:"channel"`
	Billing  Delivery `json:"billing"`
	// Team covers changes to the person's own membership, such as a new role.
	Team Delivery `json:"team"`
}

// DefaultNotifications returns the settings of a person who has never changed them. By default,
// people are emailed about failures and about everything else that requires action.
func DefaultNotifications() Notifications {
	return Notifications{
		Failure: true, Approval: DeliveryMail, Comment: DeliveryBell, Channel: DeliveryMail, Billing: DeliveryMail,
		Team: DeliveryMail,
	}
}

// Member is a person in an organization, as seen by other members.
type Member struct {
	Person    PersonID  `db:"id"`
	Email     string    `db:"email"`
	Name      string    `db:"name"`
	Picture   string    `db:"picture"`
	Role      Role      `db:"role"`
	Disabled  bool      `db:"disabled"`
	CreatedAt time.Time `db:"created_at"`
	// Notifications holds the person's notification settings.
	Notifications Notifications `db:"-"`
}

// Impersonable is a membership that an instance administrator may impersonate.
type Impersonable struct {
	// ID is the value of the impersonation cookie; see ParseMembership.
	ID           string
	Role         Role
	Organization Organization
	Person       Person
}

// Setup holds the settings that a new person enters. An empty field leaves its setting unchanged.
type Setup struct {
	Name string
	// Company is the organization's name.
	Company string
	// Timezone is the organization's time zone.
	Timezone ZoneRequest
}
