package accounts

import (
	"strings"
	"testing"

	"crier/platform/id"
	"crier/tenancy"
)

// TestImpersonate_MailsNameTheAdministrator checks that a mail about what an instance administrator
// did as a member names the administrator, not the member.
func TestImpersonate_MailsNameTheAdministrator(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, session, target, membership := w.impersonation()
	acting, err := w.Session(t.Context(), session, "", membership, from(""))
	must(t, err)
	key := id.New[tenancy.KeyTag]()
	w.exec(`insert into api_key (org_id, id, name, prefix, hash, created_by) values ($1, $2, 'tests', 'crier_', sha256('x'), $3)`,
		target.Org, key, target.Person)
	w.exec("update person set name = 'Root' where email = 'root@example.com'")
	must(t, w.DeleteKey(t.Context(), acting, key.String()))
	if m := w.mailTo("ada@example.com"); !strings.Contains(m.Text, "by “Root”") {
		t.Errorf("the mail says %s, want that root revoked the key", m.Text)
	}
}

// TestMailDisowned_TellsAdministrators checks that neither ordinary members nor disabled ones get
// the mail.
func TestMailDisowned_TellsAdministrators(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.member(p.Org, "admin@example.com", tenancy.RoleAdmin)
	w.member(p.Org, "user@example.com", tenancy.RoleUser)
	disabled := w.member(p.Org, "disabled@example.com", tenancy.RoleAdmin)
	w.exec("update member set disabled = true where person_id = $1", disabled.Person)
	must(t, w.MailDisowned(t.Context(), p.Org, "ada.example"))
	for _, email := range []string{"ada@example.com", "admin@example.com"} {
		if m := w.mailTo(email); !strings.Contains(m.Text, "This was not me") || !strings.Contains(m.Subject, "was disconnected") {
			t.Errorf("the mail to %s is %q: %s", email, m.Subject, m.Text)
		}
	}
	for _, email := range []string{"user@example.com", "disabled@example.com"} {
		if all := w.box.to(email); len(all) != 0 {
			t.Errorf("%s got %d mails, want none", email, len(all))
		}
	}
}
