package registration_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// hasField reports whether an error names the given field of the input.
func hasField(err error, name string) bool {
	var f *fault.Error
	return errors.As(err, &f) && slices.ContainsFunc(f.Fields, func(x fault.Field) bool { return x.Name == name })
}

func TestAccounts_UnstorableTextsAreInvalid(t *testing.T) {
	t.Parallel()
	a := tenancytest.New(t, dbtest.Open(t))
	p := tenancytest.Owner(t, a, "a@example.com")
	for name, bad := range map[string]string{"NUL": "a\x00b@example.com", "no UTF-8": "a\xff@example.com"} {
		whole := registration.NewOwner{Email: "b@example.com", Name: "N", Password: tenancytest.Password, Organization: "O"}
		asEmail, asName, asOrganization := whole, whole, whole
		asEmail.Email, asName.Name, asOrganization.Organization = bad, bad, bad
		for field, n := range map[string]registration.NewOwner{"email": asEmail, "name": asName, "organization": asOrganization} {
			if _, err := a.CreateOwner(t.Context(), n); !fault.Is(err, fault.Invalid) || !hasField(err, field) {
				t.Errorf("an owner with %s in the %s: %v, want Invalid with this field", name, field, err)
			}
		}
		if _, err := a.CreateOrganization(t.Context(), p, bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("an organization with %s: %v, want Invalid", name, err)
		}
		if _, _, err := a.CreateKey(t.Context(), p, tenancy.NewKey{Name: bad}); !fault.Is(err, fault.Invalid) {
			t.Errorf("a key with %s: %v, want Invalid", name, err)
		}
		_, wrong := a.Login(t.Context(), "nobody@example.com", tenancytest.Password, tenancytest.Here)
		if _, err := a.Login(t.Context(), bad, tenancytest.Password, tenancytest.Here); !fault.Is(err, fault.Invalid) || err.Error() != wrong.Error() {
			t.Errorf("a log-in with %s: %v, want the error of an unknown address: %v", name, err, wrong)
		}
	}
	tenancytest.Owner(t, a, "b@example.com") // the refused owners were not stored
}

func TestCreateOwner_PasswordHas8To128Characters(t *testing.T) {
	t.Parallel()
	a := tenancytest.New(t, dbtest.Open(t))
	for name, c := range map[string]struct {
		password string
		ok       bool
	}{
		"none":                          {password: "", ok: false},
		"1 character":                   {password: "x", ok: false},
		"7 characters":                  {password: "1234567", ok: false},
		"7 characters of two bytes":     {password: strings.Repeat("é", 7), ok: false},
		"7 characters and a space":      {password: "v7k!q2z ", ok: false},
		"8 characters":                  {password: "v7k!q2zm", ok: true},
		"8 characters that are common":  {password: "12345678", ok: false},
		"128 characters":                {password: strings.Repeat("x", 128), ok: true},
		"128 characters of three bytes": {password: strings.Repeat("字", 128), ok: true},
		"129 characters":                {password: strings.Repeat("x", 129), ok: false},
		"a million characters":          {password: strings.Repeat("x", 1<<20), ok: false},
	} {
		email := strings.ReplaceAll(name, " ", "-") + "@example.com"
		_, err := a.CreateOwner(t.Context(), registration.NewOwner{
			Email: email, Name: "N", Password: c.password, Organization: "O",
		})
		if c.ok && err != nil || !c.ok && !fault.Is(err, fault.Invalid) {
			t.Errorf("a password of %s: %v, accepted should be %t", name, err, c.ok)
		}
		signIn, err := a.Login(t.Context(), email, c.password, tenancytest.Here)
		if (err == nil) != c.ok || (signIn.Session != "") != c.ok {
			t.Errorf("a log-in with a password of %s: %+v, %v, want a session: %t", name, signIn, err, c.ok)
		}
	}
}
