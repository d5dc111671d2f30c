package publishing

import (
	"regexp"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

// TagTag distinguishes tag ids (platform/id).
type TagTag struct{}

// TagID identifies a tag.
type TagID = id.ID[TagTag]

// Tag is a label for posts. Its name is unique within the organization, ignoring case.
type Tag struct {
	ID   TagID  `db:"id"`
	Name string `db:"name"`
	// Color has the form #rrggbb, in lower case.
	Color     string    `db:"color"`
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// Limits for tags. MaxPostTags is per post, and MaxTags is per organization.
const (
	// MaxTagName is in characters.
	MaxTagName  = 64
	MaxPostTags = 100
	MaxTags     = 1_000
)

// SaveTag holds the name and color for a new tag, or the new name and color for an existing tag.
type SaveTag struct {
	Name  string
	Color string
}

var colorForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// Cleaned returns the command with the name cleaned by tenancy.CleanName and the color in lower
// case. If the command is not valid, Cleaned returns an Invalid fault that lists every problem.
func (c SaveTag) Cleaned() (SaveTag, error) {
	var faults fault.List
	name, rule := tenancy.CleanName(c.Name, 1, MaxTagName)
	if rule != "" {
		faults.Add("name", rule)
	}
	color := strings.ToLower(strings.TrimSpace(c.Color))
	if !colorForm.MatchString(color) {
		faults.Add("color", "must have the form #rrggbb, for example #1f6feb")
	}
	return SaveTag{Name: name, Color: color}, faults.Err("publishing.SaveTag", "The tag is not valid.")
}
