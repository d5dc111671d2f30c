package accounts

import (
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/registration"
)

func newRegistration(email, company string) tenancy.Registration {
	return tenancy.Registration{
		Email: email, Name: "Ada", Password: password, Organization: company, From: from(""),
	}
}

func (w *rig) register(r tenancy.Registration) {
	w.t.Helper()
	in, err := w.Register(w.t.Context(), r)
	if err != nil || in.Step != tenancy.StepConfirm || in.Session != "" || in.Token != "" {
		w.t.Fatalf("got %+v, %v, want to be asked for a confirmation and no session", in, err)
	}
}

func (w *rig) activate(code string) tenancy.SignIn {
	w.t.Helper()
	in, ok, err := w.Activate(w.t.Context(), code, password, from(""))
	if err != nil || !ok || in.Session == "" {
		w.t.Fatalf("activate: got %+v, %v, %v, want a session", in, ok, err)
	}
	return in
}

func (w *rig) wantDeadLink(name, code string) {
	w.t.Helper()
	in, ok, err := w.Activate(w.t.Context(), code, password, from(""))
	if err != nil || ok || in.Session != "" {
		w.t.Errorf("%s: got %+v, %v, %v, want false", name, in, ok, err)
	}
}

func TestRegister_LinkMakesTheAccountOnce(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.register(newRegistration(" Ada@Example.COM ", "Analytical Engines"))
	w.wantCount(0, "person")
	w.wantCount(0, "organization")
	code := w.link("ada@example.com")
	in := w.activate(code)
	if !in.Onboarding || in.Org.IsZero() || in.Device == "" {
		t.Errorf("got %+v, want a new person with an organization and a device", in)
	}
	p := w.principal(in.Session, in.Org.String())
	if p.Role != tenancy.RoleSuperAdmin || p.Name != "ada@example.com" || p.Access != tenancy.AccessFull {
		t.Errorf("got %+v, want the owner ada@example.com", p)
	}
	w.wantCount(1, "person where verified and email = 'ada@example.com' and name = 'Ada'")
	w.wantCount(1, "organization where name = 'Analytical Engines'")
	w.wantCount(0, "confirmation")
	w.wantCount(0, "confirmation_link")
	w.wantAudit(in.Org, tenancy.ActionOrganizationCreated, 1)
	w.wantAudit(in.Org, tenancy.ActionSignedIn, 1)
	w.wantDeadLink("the link again", code)
	w.wantDeadLink("no link", "x")
	w.wantDeadLink("nothing", "")
	w.wantCount(1, "session")
	w.deliver()
	if got := w.box.subjects("ada@example.com"); got != "Activate your account at Crier" {
		t.Errorf("got the mails %s, want the activation alone", got)
	}
}

func TestRegister_EachLinkMakesItsOwnRegistration(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.register(newRegistration("ada@example.com", "Of the stranger"))
	stranger := w.link("ada@example.com")
	mine := newRegistration("ada@example.com", "Of Ada")
	mine.Password = "another good password"
	w.register(mine)
	own := w.link("ada@example.com")
	_, _, err := w.Activate(t.Context(), stranger, mine.Password, from(""))
	wantFault(t, "the stranger's link with the password of Ada", err, fault.Invalid)
	if in, ok, err := w.Activate(t.Context(), own, mine.Password, from("")); err != nil || !ok || in.Session == "" {
		t.Fatalf("activate: got %+v, %v, %v, want a session", in, ok, err)
	}
	w.wantCount(1, "organization where name = 'Of Ada'")
	w.wantCount(1, "organization")
	_, err = w.Login(t.Context(), "ada@example.com", password, from(""))
	wantFault(t, "the stranger's password", err, fault.Invalid)
	w.wantDeadLink("the stranger's link after the account", stranger)
	w.wantCount(1, "person")
}

func TestActivate_InAnotherBrowserNeedsThePassword(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	in, err := w.Register(t.Context(), newRegistration("ada@example.com", "Engines"))
	if err != nil || in.Device == "" {
		t.Fatalf("got %+v, %v, want a token for the cookie of the browser", in, err)
	}
	code := w.link("ada@example.com")
	hashed := w.Hashed()
	for name, device := range map[string]string{"without a cookie": "", "another browser": "x"} {
		got, ok, err := w.Activate(t.Context(), code, "", from(device))
		if err != nil || ok || got.Step != tenancy.StepPassword || got.Session != "" {
			t.Errorf("%s: got %+v, %v, %v, want to be asked for the password", name, got, ok, err)
		}
	}
	if got := w.Hashed(); got != hashed {
		t.Errorf("got %d passwords hashed, want none without a password", got-hashed)
	}
	_, _, err = w.Activate(t.Context(), code, "a wrong password", from("x"))
	wantFault(t, "a wrong password", err, fault.Invalid)
	w.wantCount(0, "person")
	w.wantDeadLink("no link, with a password", "x")
	done, ok, err := w.Activate(t.Context(), code, "", from(in.Device))
	if err != nil || !ok || done.Session == "" {
		t.Fatalf("the browser that registered: got %+v, %v, %v, want a session", done, ok, err)
	}
	r := newRegistration("bob@example.com", "Engines")
	r.From.Device = "of somebody else"
	in, err = w.Register(t.Context(), r)
	if err != nil || in.Device != "" {
		t.Fatalf("got %+v, %v, want no other cookie", in, err)
	}
	if got, ok, err := w.Activate(t.Context(), w.link("bob@example.com"), "", from("of somebody else")); err != nil || !ok || got.Device == "" {
		t.Errorf("got %+v, %v, %v, want a session, and a device that only Bob has", got, ok, err)
	}
	w.exec("insert into confirmation (id, kind, email, organization, provider, issuer, subject, expires_at) values " +
		"(gen_random_uuid(), 'registration', 'eve@example.com', 'E', 'GITHUB', 'https://idp', 's', now() + interval '9 years')")
	must(t, w.ResendActivation(t.Context(), "eve@example.com"))
	_, _, err = w.Activate(t.Context(), w.link("eve@example.com"), password, from(""))
	wantFault(t, "an identity of a provider in another browser", err, fault.Invalid)
}

func TestRegister_LinkExpires(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.register(newRegistration("ada@example.com", "Engines"))
	code := w.link("ada@example.com")
	w.advance(tenancy.ConfirmationLife)
	w.wantDeadLink("after a day", code)
	w.wantCount(0, "person")
	must(t, w.ResendActivation(t.Context(), "ada@example.com"))
	w.deliver()
	if got := len(w.box.to("ada@example.com")); got != 1 {
		t.Errorf("got %d mails, want none after the registration is over", got-1)
	}
}

func TestResend_BothLinksWorkOnce(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.register(newRegistration("ada@example.com", "Engines"))
	first := w.link("ada@example.com")
	must(t, w.ResendActivation(t.Context(), "ADA@example.com"))
	second := w.link("ada@example.com")
	if first == second {
		t.Fatal("both mails have the same token")
	}
	w.wantCount(2, "confirmation_link")
	w.activate(first)
	w.wantDeadLink("the other link", second)
	w.wantCount(1, "person")
}

func TestResend_SendsNoLinkForSeveralRegistrations(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.register(newRegistration("ada@example.com", "Engines"))
	own := w.link("ada@example.com")
	w.register(newRegistration("ada@example.com", "Of the stranger"))
	w.link("ada@example.com")
	w.box.clear()
	must(t, w.ResendActivation(t.Context(), "ada@example.com"))
	if m := w.mailTo("ada@example.com"); m.Subject != "Register again at Crier" || tokenOf(m) != "" {
		t.Errorf("got the mail %q with the token %q, want none", m.Subject, tokenOf(m))
	}
	w.activate(own)
	w.wantCount(1, "organization where name = 'Engines'")
}

func TestRegister_KnownAddressGetsMailWithoutLink(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.person("ada@example.com")
	w.register(newRegistration("ada@example.com", "Engines"))
	m := w.mailTo("ada@example.com")
	if m.Subject != "You have an account at Crier" || tokenOf(m) != "" {
		t.Errorf("got the mail %q with the token %q, want that there is an account", m.Subject, tokenOf(m))
	}
	must(t, w.ResendActivation(t.Context(), "ada@example.com"))
	if m := w.mailTo("ada@example.com"); tokenOf(m) != "" {
		t.Errorf("got a link after resend: %s", m.Text)
	}
	w.wantCount(0, "confirmation_link")
	w.wantCount(0, "organization")
}

func TestRegister_Modes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[registration.Policy]struct{ empty, later bool }{
		registration.RegisterFirst:   {empty: true},
		registration.RegisterInvited: {},
		registration.RegisterOpen:    {empty: true, later: true},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := open(t, func(w *rig) { w.cfg.Registration.Registration = mode })
			check := func(name string, can bool) {
				got, err := w.CanRegister(t.Context())
				if err != nil || got != can {
					t.Errorf("%s: CanRegister returned %v, %v, want %v", name, got, err, can)
				}
				before := w.Hashed()
				_, err = w.Register(t.Context(), newRegistration(name+"@example.com", "Engines"))
				if can != (err == nil) || !can && !fault.Is(err, fault.Invalid) {
					t.Errorf("%s: Register returned %v, want to be allowed: %v", name, err, can)
				}
				if hashed := w.Hashed() - before; !can && hashed != 0 {
					t.Errorf("%s: got %d hashes of a refused registration, want 0", name, hashed)
				}
			}
			check("empty", want.empty)
			w.owner("owner@example.com")
			check("later", want.later)
			if want.empty && !want.later {
				w.wantDeadLink("a link from before the first organization", w.link("empty@example.com"))
				w.wantCount(1, "person")
			}
		})
	}
}

func TestRegister_FirstMakesOneOrganization(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, func(w *rig) { w.cfg.Registration.Registration = registration.RegisterFirst })
	var codes []string
	for i := range 20 {
		email := string(rune('a'+i)) + "@example.com"
		w.exec(`insert into confirmation (id, kind, email, organization, password_hash, expires_at)
			values (gen_random_uuid(), 'registration', $1, 'Engines', $2, $3)`, email, cheapHash, w.time().Add(time.Hour))
		must(t, w.ResendActivation(t.Context(), email))
		codes = append(codes, w.link(email))
	}
	// The lock keeps people from being stored until several activations have begun.
	w.exec("begin")
	w.exec("lock table person in share mode")
	var released sync.WaitGroup
	released.Go(func() {
		w.awaitBlocked(2)
		if _, err := w.super.Exec(t.Context(), "commit"); err != nil {
			t.Errorf("unlock: %v", err)
		}
	})
	results := together(len(codes), func(i int) any {
		_, ok, err := w.Activate(t.Context(), codes[i], password, site(i))
		if err != nil {
			return err
		}
		return ok
	})
	released.Wait()
	made := 0
	for _, r := range results {
		if err, failed := r.(error); failed {
			t.Errorf("activate: %v", err)
		}
		if r == true {
			made++
		}
	}
	if made != 1 {
		t.Errorf("got %d accounts, want 1", made)
	}
	for _, table := range []string{"organization", "person", "member", "session"} {
		w.wantCount(1, table)
	}
}

func TestRegister_FiftyAtOnceMakeOneAccount(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	errs := together(50, func(i int) error {
		r := newRegistration("ada@example.com", "Engines")
		r.From = site(i)
		r.From.Device = "the browser"
		_, err := patient(func() (tenancy.SignIn, error) { return w.Register(t.Context(), r) })
		return err
	})
	if got := kinds(errs); got[""] != 50 {
		t.Fatalf("got %v, want 50 registrations", got)
	}
	w.deliver()
	mails := w.box.to("ada@example.com")
	if len(mails) != 50 {
		t.Fatalf("got %d mails, want 50", len(mails))
	}
	results := together(50, func(i int) bool {
		_, ok, err := w.Activate(t.Context(), tokenOf(mails[i]), "", from("the browser"))
		if err != nil {
			t.Errorf("activate: %v", err)
		}
		return ok
	})
	made := 0
	for _, ok := range results {
		if ok {
			made++
		}
	}
	if made != 1 {
		t.Errorf("got %d accounts, want 1", made)
	}
	for _, table := range []string{"organization", "person", "member", "session"} {
		w.wantCount(1, table)
	}
}

func TestRegister_WithoutMail(t *testing.T) {
	t.Parallel()
	w := open(t, withoutMail)
	in, err := w.Register(t.Context(), newRegistration("ada@example.com", "Engines"))
	if err != nil || in.Session == "" || in.Org.IsZero() || !in.Onboarding {
		t.Fatalf("got %+v, %v, want a session at once", in, err)
	}
	w.wantCount(1, "person where not verified")
	_, err = w.Register(t.Context(), newRegistration("ADA@example.com", "Engines"))
	wantFault(t, "the address again", err, fault.Invalid)
	w.wantCount(1, "organization")
	w.wantCount(0, "mail")
	w.wantCount(0, "confirmation")
	must(t, w.Forgot(t.Context(), "ada@example.com"))
	must(t, w.ResendActivation(t.Context(), "ada@example.com"))
	w.wantCount(0, "mail")
	w.wantCount(0, "jobs.river_job")
}

func TestRegister_RefusedInputs(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	long := func(n int) string { return strings.Repeat("é", n) }
	for name, change := range map[string]func(r *tenancy.Registration){
		"no address":          func(r *tenancy.Registration) { r.Email = "ada" },
		"NUL in the address":  func(r *tenancy.Registration) { r.Email = "a\x00@example.com" },
		"bidi in the name":    func(r *tenancy.Registration) { r.Name = "Ada\u202e" },
		"a short company":     func(r *tenancy.Registration) { r.Organization = "ab" },
		"a name of a MB":      func(r *tenancy.Registration) { r.Name = strings.Repeat("a", 1<<20) },
		"a common password":   func(r *tenancy.Registration) { r.Password = "password123" },
		"Common, in capitals": func(r *tenancy.Registration) { r.Password = "PASSWORD123" },
		"7 characters":        func(r *tenancy.Registration) { r.Password = long(7) },
		"129 characters":      func(r *tenancy.Registration) { r.Password = long(129) },
		"8 spaces":            func(r *tenancy.Registration) { r.Password = "        " },
		"spaces around 7":     func(r *tenancy.Registration) { r.Password = " gravel7   " },
		"no UTF-8":            func(r *tenancy.Registration) { r.Password = "\xff\xfe good password" },
	} {
		r := newRegistration("ada@example.com", "Engines")
		change(&r)
		_, err := w.Register(t.Context(), r)
		wantFault(t, name, err, fault.Invalid)
	}
	w.wantCount(0, "confirmation")
	w.wantCount(0, "mail")
	for name, ok := range map[string]string{
		"8 characters": "Zäüqé7!k", "128 characters": long(128), "inner spaces": "a b c d e f 7", "outer ones": " grave l7 q ",
	} {
		r := newRegistration("ada@example.com", "Engines")
		r.Password = ok
		if _, err := w.Register(t.Context(), r); err != nil {
			t.Errorf("%s: %v, want to be accepted", name, err)
		}
	}
}
