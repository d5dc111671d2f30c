package accounts

import (
	"testing"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

func TestLogin_RefusalsAreTheSame(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.person("ada@example.com")
	w.exec("update person set password_hash = '' where id = $1", w.person("provider@example.com"))
	texts := map[string]bool{}
	for name, c := range map[string]struct{ email, password string }{
		"a wrong password":   {email: "ada@example.com", password: "wrong horse battery"},
		"nobody":             {email: "nobody@example.com", password: password},
		"no address":         {email: "nobody", password: password},
		"NUL":                {email: "ada\x00@example.com", password: password},
		"without a password": {email: "provider@example.com", password: password},
		"an empty password":  {email: "provider@example.com", password: ""},
		"a space more":       {email: "ada@example.com", password: password + " "},
		"a long password":    {email: "ada@example.com", password: password + string(make([]byte, 1000))},
	} {
		before := w.Hashed()
		in, err := w.Login(t.Context(), c.email, c.password, from(""))
		wantFault(t, name, err, fault.Invalid)
		if got := w.Hashed() - before; got != 1 || in.Session+in.Token+in.Device != "" {
			t.Errorf("%s: got %d hashes and %+v, want 1 and nothing", name, got, in)
		}
		texts[err.Error()] = true
	}
	if len(texts) != 1 {
		t.Errorf("got the refusals %v, want one text", texts)
	}
	w.wantCount(0, "session")
	w.wantCount(0, "mail")
	before := w.Hashed()
	in, err := w.Login(t.Context(), " ADA@Example.com ", password, from(""))
	if err != nil || in.Session == "" || w.Hashed()-before != 1 {
		t.Errorf("the right password: got %+v, %v, want a session after one hash", in, err)
	}
	w.wantCount(1, "session")
}

// TestForgot_SameWorkForAllAddresses counts the work by which a stranger could tell known from
// unknown addresses.
func TestForgot_SameWorkForAllAddresses(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.person("known@example.com")
	for _, email := range []string{"known@example.com", "unknown@example.com", "KNOWN@example.com"} {
		for name, ask := range map[string]func() error{
			"forgot": func() error { return w.Forgot(t.Context(), email) },
			"resend": func() error { return w.ResendActivation(t.Context(), email) },
			"register": func() error {
				in, err := w.Register(t.Context(), newRegistration(email, "Engines"))
				if in.Step != tenancy.StepConfirm || in.Token != "" {
					t.Errorf("register %s: got %+v, want the same answer for all", email, in)
				}
				return err
			},
		} {
			hashed, mails, jobs := w.Hashed(), w.count("select count(*) from mail"), w.count("select count(*) from jobs.river_job")
			must(t, ask())
			want := int64(0)
			if name == "register" {
				want = 1
			}
			if got := w.Hashed() - hashed; got != want {
				t.Errorf("%s of %s: got %d hashes, want %d", name, email, got, want)
			}
			w.wantCount(mails+1, "mail")
			w.wantCount(jobs+1, "jobs.river_job")
		}
	}
	w.deliver()
	w.wantCount(0, "mail")
	if got := w.box.subjects("unknown@example.com"); got != "Activate your account at Crier" &&
		got != "Activate your account at Crier | Activate your account at Crier" {
		t.Errorf("got the mails %q to an unknown address, want an activation and no reset", got)
	}
}

func TestLogin_MailsOnlyAboutNewBrowsers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada, eve := w.person("ada@example.com"), w.person("eve@example.com")
	login := func(email, device string) string {
		in, err := w.Login(t.Context(), email, password, from(device))
		must(t, err)
		w.deliver()
		return in.Device
	}
	wantMails := func(name string, want int) {
		if got := len(w.box.to("ada@example.com")); got != want {
			t.Errorf("%s: got %d mails, want %d", name, got, want)
		}
	}
	first := login("ada@example.com", "")
	wantMails("the first browser", 0)
	if again := login("ada@example.com", first); again != "" {
		t.Errorf("got another device for a known browser")
	}
	wantMails("the first browser again", 0)
	second := login("ada@example.com", "")
	wantMails("a second browser", 1)
	strange := login("eve@example.com", "")
	if got := login("ada@example.com", strange); got == "" {
		t.Error("the browser of another person counts as known")
	}
	wantMails("the browser of another person", 2)
	login("ada@example.com", "no device")
	wantMails("a cookie that is no device", 3)
	w.wantCount(4, "device where person_id = $1", ada)
	w.wantCount(1, "device where person_id = $1", eve)
	for name, c := range map[string]struct {
		email, device string
		want          bool
	}{
		"the first":      {email: "ADA@example.com", device: first, want: true},
		"the second":     {email: "ada@example.com", device: second, want: true},
		"another's":      {email: "ada@example.com", device: strange},
		"of nobody":      {email: "nobody@example.com", device: first},
		"without one":    {email: "ada@example.com"},
		"without a name": {email: "", device: first},
	} {
		if got, err := w.KnownDevice(t.Context(), c.email, from(c.device)); err != nil || got != c.want {
			t.Errorf("KnownDevice, %s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
	w.advance(tenancy.DeviceMemory)
	if got, err := w.KnownDevice(t.Context(), "ada@example.com", from(first)); err != nil || got {
		t.Errorf("KnownDevice after a year: got %v, %v, want false", got, err)
	}
}

func TestLogin_SignInsPerPersonAreLimited(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.person("ada@example.com")
	w.exec(`insert into session (id, person_id, hash, created_at, seen_at, expires_at)
		select gen_random_uuid(), $1, sha256(n::text::bytea), $2::timestamptz - n * interval '1 hour', $2::timestamptz - n * interval '1 hour',
		$2::timestamptz + interval '1 day' from generate_series(1, 200) n`, ada, w.time())
	w.login("ada@example.com", tenancy.StepDone)
	w.wantCount(100, "session")
	for range 14 {
		w.login("ada@example.com", tenancy.StepDone)
	}
	w.wantCount(9, "mail where kind = 'new-device'") // no mail about the first browser
	w.exec("update person set sign_ins = 100")
	_, err := w.Login(t.Context(), "ada@example.com", password, from(""))
	wantFault(t, "one more in the hour", err, fault.RateLimited)
	_, err = w.Login(t.Context(), "ada@example.com", "wrong", from(""))
	wantFault(t, "a wrong password", err, fault.Invalid)
	w.person("bob@example.com")
	w.login("bob@example.com", tenancy.StepDone)
	w.advance(time.Hour)
	w.login("ada@example.com", tenancy.StepDone)
	w.wantCount(1, "person where email = 'ada@example.com' and sign_ins = 1")
}

func TestLogin_RemembersTheLastHundredBrowsers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada, eve := w.person("ada@example.com"), w.person("eve@example.com")
	for _, person := range []tenancy.PersonID{ada, eve} {
		w.exec(`insert into device (hash, person_id, seen_at, expires_at)
			select sha256((n || p.id::text)::bytea), p.id, $2::timestamptz - n * interval '1 hour', $2::timestamptz + interval '1 year'
			from generate_series(1, 150) n, person p where p.id = $1`, person, w.time())
	}
	w.login("ada@example.com", tenancy.StepDone)
	w.wantCount(100, "device where person_id = $1", ada)
	w.wantCount(1, "device where person_id = $1 and seen_at = $2", ada, w.time())
	w.wantCount(1, "device where person_id = $1 and seen_at = $2::timestamptz - interval '99 hours'", ada, w.time())
	w.wantCount(150, "device where person_id = $1", eve)
}

func TestSessions_EndWhenIdleOrOld(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.person("ada@example.com")
	idle := w.login("ada@example.com", tenancy.StepDone).Session
	w.advance(tenancy.SessionIdle - 1)
	w.wantAlive("just before 12 h", idle)
	w.advance(tenancy.SessionIdle)
	w.wantEnded("12 h after the last use", idle)
	used := w.login("ada@example.com", tenancy.StepDone).Session
	for range 30*24/10 - 1 {
		w.advance(10 * 60 * 60 * 1e9)
		w.wantAlive("used every 10 h", used)
	}
	w.advance(10 * 60 * 60 * 1e9)
	w.wantEnded("30 days after the sign-in", used)
}

func TestSessions_ListAndEnd(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.person("eve@example.com")
	second, third := w.login("ada@example.com", tenancy.StepDone).Session, w.login("ada@example.com", tenancy.StepDone).Session
	eve := w.login("eve@example.com", tenancy.StepDone).Session
	all, err := w.ListSessions(t.Context(), p)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %d sessions, %v, want 3", len(all), err)
	}
	if all[0].Current || all[1].Current || !all[2].Current || all[2].ID != p.Session || all[0].Agent != "Firefox" {
		t.Errorf("got %+v, want the newest first and the last one as the present one", all)
	}
	evesID := w.principal(eve, "").Session
	_, err = w.EndSessions(t.Context(), p, evesID.String())
	wantFault(t, "another person's session", err, fault.NotFound)
	_, err = w.EndSessions(t.Context(), p, "no id")
	wantFault(t, "no id", err, fault.NotFound)
	w.wantAudit(p.Org, tenancy.ActionSignedOut, 0)
	if n, err := w.EndSessions(t.Context(), p, w.principal(second, "").Session.String()); err != nil || n != 1 {
		t.Errorf("end one: got %d, %v, want 1", n, err)
	}
	w.wantEnded("the one that was ended", second)
	w.wantAlive("the other", third)
	if n, err := w.EndSessions(t.Context(), p, ""); err != nil || n != 1 {
		t.Errorf("end the others: got %d, %v, want 1", n, err)
	}
	w.wantEnded("the other", third)
	w.wantAlive("another person's", eve)
	w.wantCount(1, "session where person_id = $1", p.Person)
	w.wantAudit(p.Org, tenancy.ActionSignedOut, 2)
	must(t, w.Logout(t.Context(), eve, from("")))
	must(t, w.Logout(t.Context(), eve, from("")))
	w.wantEnded("after the log-out", eve)
}
