package notice

import (
	"errors"
	"slices"
	"time"

	"crier/platform/pg"
	"crier/tenancy"
)

// Notice holds the names, times and reports that appear in an email. It is stored as JSON and
// contains no secrets.
type Notice struct {
	Confirmation tenancy.ConfirmationID `json:"confirmation,omitzero"`
	Org          tenancy.OrgID          `json:"org,omitzero"`
	Invitation   tenancy.InvitationID   `json:"invitation,omitzero"`
	// Name is the name of an organization or identity provider. In an email about an address
	// change, it is the new address.
	Name    string       `json:"name,omitempty"`
	Key     string       `json:"key,omitempty"`
	Channel string       `json:"channel,omitempty"`
	By      string       `json:"by,omitempty"`
	Role    tenancy.Role `json:"role,omitempty"`
	Address string       `json:"address,omitempty"`
	Agent   string       `json:"agent,omitempty"`
	// Zone is the organization's time zone, or "" in emails that concern only an account.
	Zone  string    `json:"zone,omitempty"`
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Kind and After are set for emails of kind Members. Kind is the kind of email to queue, and
	// After is the last person on the previous page.
	Kind  Kind             `json:"kind,omitempty"`
	After tenancy.PersonID `json:"after,omitzero"`
	// Reports is set for emails of kind Report. More is the number of reports that the email leaves
	// out.
	Reports []tenancy.Report `json:"reports,omitempty"`
	More    int              `json:"more,omitempty"`
}

// IsOptional reports whether people can opt out of emails of this kind.
func (n Notice) IsOptional(kind Kind) bool {
	switch kind {
	case Role, Removed, Report:
		return true
	case OrganizationDeletion, DeletionUndone:
		return n.Role == tenancy.RoleUser
	}
	return false
}

// Topics returns the notice's topics. A person who turns off email about all of these topics no
// longer receives the notice.
func (n Notice) Topics() (out []tenancy.MailTopic) {
	if len(n.Reports) == 0 {
		return []tenancy.MailTopic{tenancy.TopicTeam}
	}
	for _, r := range n.Reports {
		if t := r.Topic(); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// WantedBy returns a copy of the notice that contains only what a person with the given settings
// wants. ok is false if the person wants none of it.
func (n Notice) WantedBy(settings tenancy.Notifications) (out Notice, ok bool) {
	if len(n.Reports) == 0 {
		return n, settings.Mails(tenancy.TopicTeam)
	}
	var wanted []tenancy.Report
	for _, r := range n.Reports {
		if r, ok := r.For(settings); ok {
			wanted = append(wanted, r)
		}
	}
	n.Reports = wanted
	return n, len(wanted) > 0
}

// IsTrueOf reports whether an email to the organization's members would still be accurate. It
// returns false for reports while the organization is suspended, because members cannot use a
// suspended organization.
func (n Notice) IsTrueOf(o tenancy.Organization) bool {
	if n.Kind == Report && o.SuspendedAt != nil {
		return false
	}
	return (o.DeletedAt != nil) == (n.Kind == OrganizationDeletion)
}

// Bound sorts Reports so that problems come first, and truncates the list to the maximum number of
// reports in an email. It adds the number of removed reports to More.
func (n *Notice) Bound() {
	slices.SortStableFunc(n.Reports, func(a, b tenancy.Report) int {
		switch {
		case IsProblem(a) == IsProblem(b):
			return 0
		case IsProblem(a):
			return -1
		}
		return 1
	})
	if extra := len(n.Reports) - tenancy.MaxListedReports; extra > 0 {
		n.Reports, n.More = n.Reports[:tenancy.MaxListedReports], n.More+extra
	}
}

// IsProblem reports whether a report is about a problem rather than about published posts or an
// approval.
func IsProblem(r tenancy.Report) bool {
	return r.Kind != tenancy.ReportPublished && r.Kind != tenancy.ReportApproval
}

// ErrObsolete is returned for an email that no longer applies, such as one for a revoked
// invitation.
var ErrObsolete = errors.New("there is nothing to send")

// Obsolete returns ErrObsolete if err is pgx.ErrNoRows, and err itself otherwise.
func Obsolete(err error) error {
	if pg.IsNoRows(err) {
		return ErrObsolete
	}
	return err
}
