package notice

import (
	"errors"
	"slices"
	"time"

	"crier/platform/pg"
	"crier/tenancy"
)

// Notice holds the names, times and reports in a mail. It is stored as JSON and holds nothing
// secret.
type Notice struct {
	Confirmation tenancy.ConfirmationID `json:"confirmation,omitzero"`
	Org          tenancy.OrgID          `json:"org,omitzero"`
	Invitation   tenancy.InvitationID   `json:"invitation,omitzero"`
	// Name is the name of an organization or an identity provider, or the new address.
	Name    string       `json:"name,omitempty"`
	Key     string       `json:"key,omitempty"`
	Channel string       `json:"channel,omitempty"`
	By      string       `json:"by,omitempty"`
	Role    tenancy.Role `json:"role,omitempty"`
	Address string       `json:"address,omitempty"`
	Agent   string       `json:"agent,omitempty"`
	// Zone is the time zone of the organization, or "" in mails that concern only an account.
	Zone  string    `json:"zone,omitempty"`
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Kind and After are set for the kind Members. Kind is the kind of the mails to queue, and
	// After is the person after whom the page of members begins.
	Kind  Kind             `json:"kind,omitempty"`
	After tenancy.PersonID `json:"after,omitzero"`
	// Reports are set for the kind Report. More is the number of reports that the mail does not
	// list.
	Reports []tenancy.Report `json:"reports,omitempty"`
	More    int              `json:"more,omitempty"`
}

// IsOptional reports whether the person can turn off mails of this kind.
func (n Notice) IsOptional(kind Kind) bool {
	switch kind {
	case Role, Removed, Report:
		return true
	case OrganizationDeletion, DeletionUndone:
		return n.Role == tenancy.RoleUser
	}
	return false
}

// Topics returns the topics that the person can turn off to stop such mails.
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

// WantedBy returns the mail as a person with these settings gets it. ok is false if the person
// wants none of it.
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

// IsTrueOf reports whether a mail to the members of an organization is still true. It is false for
// reports while the organization is suspended, because its members cannot use it.
func (n Notice) IsTrueOf(o tenancy.Organization) bool {
	if n.Kind == Report && o.SuspendedAt != nil {
		return false
	}
	return (o.DeletedAt != nil) == (n.Kind == OrganizationDeletion)
}

// Bound keeps only the reports that a mail lists, problems first, and counts the others.
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

// IsProblem reports whether a report is about a problem, rather than about published posts or
// approvals.
func IsProblem(r tenancy.Report) bool {
	return r.Kind != tenancy.ReportPublished && r.Kind != tenancy.ReportApproval
}

// ErrObsolete is returned for a mail that is no longer applicable, such as one for a revoked
// invitation.
var ErrObsolete = errors.New("there is nothing to send")

// Obsolete returns ErrObsolete instead of pgx.ErrNoRows, and other errors unchanged.
func Obsolete(err error) error {
	if pg.IsNoRows(err) {
		return ErrObsolete
	}
	return err
}
