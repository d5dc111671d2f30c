package accounts

import (
	"strings"
	"testing"

	"crier/platform/id"
	"crier/tenancy"
)

// TestImpersonate_MailsNameTheAdministrator: a mail about what an administrator of the instance did as a member does not
// put it on the member.
func TestImpersonate_MailsNameTheAdministrator(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, session, target, membership := w.impersonation()
	acting, err := w.Session(t.Context(), session, "", membership, from(""))
	must(t, err)
	key := id.New[tenancy.KeyTag]()
	w.exec(`insert into api_key (org_id, id, name, prefix, hash, created_by) values ($1, $2, 'tests', 'crier_', sha256('x'), $3)`,
		target.Org, key, target.Person)
	must(t, w.DeleteKey(t.Context(), acting, key.String()))
	if m := w.mailTo("ada@example.com"); !strings.Contains(m.Text, "root@example.com") || strings.Contains(m.Text, "by “ada@example.com”") {
		t.Errorf("the mail says %s, want that root revoked the key", m.Text)
	}
}
