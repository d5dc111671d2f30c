package conformance

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"crier/publishing/connector"
)

const maxDestination = 255 // bytes

var identifier = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func (s Suite) describe(t *testing.T) {
	d := s.New().Describe()
	if !reflect.DeepEqual(d, s.New().Describe()) {
		t.Error("Describe is not constant")
	}
	check := func(ok bool, complaint string) {
		t.Helper()
		if !ok {
			t.Errorf("Describe: %s", complaint)
		}
	}
	has := func(capability string) bool { return slices.Contains(d.Capabilities, capability) }
	check(identifier.MatchString(d.ID), "the ID is not a lower-case identifier")
	check(d.Name != "", "no Name")
	check(d.Rules != "", "no Rules for agents")
	check(d.Grade.Valid(), "no valid Grade")
	check(slices.Contains([]string{"none", "normal", "markdown", "html"}, d.Editor), "the Editor is unknown")
	units := []connector.Unit{connector.Graphemes, connector.UTF16, connector.Runes, connector.Bytes}
	check(slices.Contains(units, d.Unit), "the Unit is unknown")
	check(has("text") == (d.MaxLength > 0), `capability "text" and MaxLength disagree`)
	check(has("image") == (d.Media.MaxImages > 0), `capability "image" and MaxImages disagree`)
	check(has("video") == (d.Media.MaxVideos > 0), `capability "video" and MaxVideos disagree`)
	unknown := slices.DeleteFunc(slices.Clone(d.Capabilities), func(c string) bool {
		return c == "text" || c == "image" || c == "video"
	})
	check(len(unknown) == 0 && len(d.Capabilities) <= 3, "Capabilities are repeated or unknown")
	if s.OAuth == nil {
		describeFields(t, d, s.Fields(t))
		return
	}
	check(len(d.Fields) == 0, "an Authorizer has a form")
}

func describeFields(t *testing.T, d connector.Descriptor, good map[string]string) {
	keys := map[string]bool{}
	for _, f := range d.Fields {
		if f.Key == "" || f.Label == "" || keys[f.Key] || f.Type != "text" && f.Type != "password" {
			t.Errorf("field %+v, want a unique key, a label and the type text or password", f)
		}
		keys[f.Key] = true
		rule, err := regexp.Compile(f.Validation)
		value, given := good[f.Key]
		if err != nil {
			t.Errorf("field %s: %v", f.Key, err)
		} else if given && !rule.MatchString(value) {
			t.Errorf("field %s: its Validation rejects a value that connects", f.Key)
		}
		if f.Type == "password" && f.DefaultValue != "" {
			t.Errorf("field %s: a password with a default value", f.Key)
		}
	}
	for key := range good {
		if !keys[key] {
			t.Errorf("the good form has a field %q that the descriptor lacks", key)
		}
	}
}

func (s Suite) connect(t *testing.T) {
	t.Run("a good form opens an account", func(t *testing.T) {
		r := s.unconnected(t)
		var fields map[string]string
		if s.OAuth == nil {
			fields = s.Fields(t)
		}
		first := s.open(t, r, fields)
		a := first.Account
		if a.ID == "" || a.Name == "" || !a.Grade.Valid() {
			t.Errorf("the account has no ID, no name or no valid grade: %+v", a)
		}
		if !json.Valid(first.Credential) || len(a.Data) > 0 && !json.Valid(a.Data) {
			t.Errorf("the credential or the Data of the account is not JSON: %+v", a)
		}
		if a.Grade != s.Grade {
			t.Errorf("the account has the grade %s, the suite declares %s", a.Grade, s.Grade)
		}
		d := a.Destination
		if d == "" || len(d) > maxDestination || d != strings.ToLower(d) || strings.ContainsAny(d, "/@ ") {
			t.Errorf("the Destination is %q, want lower-case hosts of at most %d bytes in all", d, maxDestination)
		}
		r.secrets = append(r.secrets, secretsOf(r.c.Describe(), fields, first)...)
		r.noSecret("the account", a.ID+a.Name+a.Profile+a.Picture+a.Destination+string(a.Data))
		r.c = s.New()
		if second := s.open(t, r, fields); second.Account.ID != a.ID {
			t.Errorf("connecting again gives the account %q, first %q", second.Account.ID, a.ID)
		}
	})
	if s.OAuth != nil {
		t.Run("a form is refused", func(t *testing.T) { s.refused(t, map[string]string{"name": "a name"}) })
		return
	}
	t.Run("a platform that is down is transient", func(t *testing.T) {
		r := s.unconnected(t)
		for _, fault := range []Fault{RefuseDial, ErrorBefore, RateLimit} {
			r.line.failCalls(fault, maxSteps)
			_, err := r.c.Connect(t.Context(), r.s.Env, s.Fields(t))
			r.requireCall(MethodConnect)
			if connector.KindOf(err, false) != connector.KindTransient {
				t.Errorf("%s: got %v, want %s", fault, err, connector.KindTransient)
			}
		}
	})
	for name, fields := range s.BadFields {
		t.Run(name+" is refused", func(t *testing.T) { s.refused(t, fields) })
	}
}

// open connects an account, either through the connect form or by OAuth.
func (s Suite) open(t *testing.T, r *rig, fields map[string]string) connector.Connected {
	t.Helper()
	if s.OAuth != nil {
		return s.authorize(t, r)
	}
	done, err := r.c.Connect(t.Context(), r.s.Env, fields)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	return done
}

// refused checks that Connect rejects a form with an error that is not KindUnknown and contains no
// secret.
func (s Suite) refused(t *testing.T, fields map[string]string) {
	r := s.unconnected(t)
	_, err := r.c.Connect(t.Context(), r.s.Env, fields)
	if err == nil {
		t.Fatal("Connect accepts the form")
	}
	r.secrets = secretsOf(r.c.Describe(), fields, connector.Connected{})
	r.judgeError("Connect", err)
	if connector.KindOf(err, false) == connector.KindUnknown {
		t.Errorf("got %v, want another kind than unknown, because Connect may be repeated", err)
	}
}

func (s Suite) refresh(t *testing.T) {
	if s.Lasting {
		t.Skip("declared: the access of this connector does not expire")
	}
	t.Run("a new credential publishes", func(t *testing.T) {
		r := s.connected(t)
		for range 2 {
			before := string(r.s.Credential)
			r.renewCredential()
			if string(r.s.Credential) == before {
				t.Error("Refresh returned the credential that it was given")
			}
		}
		item := r.prepared()
		if _, err := r.commit(&item); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		r.want(1, item)
	})
	t.Run("after a lost response the credential works or is refused as reauth", func(t *testing.T) {
		r := s.connected(t)
		r.line.failCalls(DropAnswer, 1)
		_, err := r.c.(connector.Refresher).Refresh(t.Context(), r.s)
		r.requireCall(MethodRefresh)
		if err != nil {
			r.judgeError("Refresh", err)
			if kind := connector.KindOf(err, false); kind != connector.KindTransient {
				t.Errorf("a lost response is %s, want transient: %v", kind, err)
			}
		}
		// The platform may have rotated the tokens, in which case the user must reconnect the
		// channel.
		if _, err := r.c.(connector.Refresher).Refresh(t.Context(), r.s); err != nil {
			r.judgeError("Refresh", err)
			if kind := connector.KindOf(err, false); kind != connector.KindReauth {
				t.Errorf("Refresh after a lost response returns %s, want reauth: %v", kind, err)
			}
		}
	})
}

// renewCredential calls Refresh and replaces the session's credential, as the engine does.
func (r *rig) renewCredential() {
	r.t.Helper()
	out, err := r.c.(connector.Refresher).Refresh(r.t.Context(), r.s)
	if err != nil {
		r.judgeError("Refresh", err)
		r.t.Fatalf("Refresh: %v", err)
	}
	if !json.Valid(out.Credential) {
		r.t.Fatal("the refreshed credential is not JSON")
	}
	if out.Destination != r.s.Account.Destination {
		r.t.Errorf("the destination after Refresh is %q, want %q", out.Destination, r.s.Account.Destination)
	}
	r.s.Credential = out.Credential
	fresh := secretsOf(r.c.Describe(), nil, connector.Connected{Account: r.s.Account, Credential: out.Credential})
	r.secrets = append(r.secrets, fresh...)
}
