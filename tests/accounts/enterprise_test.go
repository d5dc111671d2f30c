package accounts

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"crier/platform/fault"
	"crier/tenancy"
)

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
	must(t, err)
	signed, err := jwt.Signed(signer).Claims(claims).Serialize()
	must(t, err)
	return signed
}

// claims returns the claims of a valid request.
func (w *rig) claims(jti, email string) map[string]any {
	now := w.time().Unix()
	return map[string]any{
		"iat": now, "exp": now + 300, "jti": jti, "id": 7, "name": "Ada", "email": email, "saasName": "Engines",
	}
}

func without(claims map[string]any, name string, value any) map[string]any {
	claims[name] = value
	if value == nil {
		delete(claims, name)
	}
	return claims
}

func TestEnterprise_RefusesInvalidTokens(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	good := func() map[string]any { return w.claims("j", "ada@example.com") }
	hs := func(c map[string]any) string { return sign(t, jose.HS256, []byte(enterpriseKey), c) }
	encode := base64.RawURLEncoding.EncodeToString
	parts := strings.Split(hs(good()), ".")
	now := w.time().Unix()
	for name, signed := range map[string]string{
		"nothing": "", "no JWT": "x.y.z", "too long": strings.Repeat("a", 1<<20),
		"another secret":     sign(t, jose.HS256, []byte(strings.Repeat("x", 32)), good()),
		"HS512":              sign(t, jose.HS512, []byte(enterpriseKey+enterpriseKey), good()),
		"RS256":              sign(t, jose.RS256, private, good()),
		"RS256 as header":    encode([]byte(`{"alg":"RS256"}`)) + "." + parts[1] + "." + parts[2],
		"none":               encode([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"none with the mark": encode([]byte(`{"alg":"none"}`)) + "." + parts[1] + "." + parts[2],
		"no signature":       parts[0] + "." + parts[1] + ".",
		"another content":    parts[0] + "." + encode([]byte(`{"email":"eve@example.com"}`)) + "." + parts[2],
		"no jti":             hs(without(good(), "jti", nil)), "a long jti": hs(without(good(), "jti", strings.Repeat("j", 129))),
		"NUL in the jti": hs(without(good(), "jti", "\x00")),
		"no iat":         hs(without(good(), "iat", nil)), "no exp": hs(without(good(), "exp", nil)),
		"exp too far": hs(without(good(), "exp", now+301)), "over": hs(without(without(good(), "iat", now-100), "exp", now)),
		"from the future": hs(without(without(good(), "iat", now+31), "exp", now+60)),
		"not yet":         hs(without(good(), "nbf", now+31)),
		"no address":      hs(without(good(), "email", "ada")), "no company": hs(without(good(), "saasName", "")),
		"a name of a MB": hs(without(good(), "name", strings.Repeat("a", 1<<12+1<<11))),
	} {
		_, key, err := w.CreateEnterpriseUser(t.Context(), signed, from(""))
		wantFault(t, name, err, fault.Invalid)
		if key != "" {
			t.Errorf("%s: got a key", name)
		}
	}
	for _, table := range []string{"person", "organization", "api_key", "used_request"} {
		w.wantCount(0, table)
	}
	off := open(t, func(w *rig) { w.cfg.Enterprise.EnterpriseSecret = "" })
	_, _, err = off.CreateEnterpriseUser(t.Context(), hs(good()), from(""))
	wantFault(t, "without a secret", err, fault.NotFound)
}

func TestEnterprise_OnceInParallel(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	signed := sign(t, jose.HS256, []byte(enterpriseKey), w.claims("once", "Ada@example.com"))
	keys := make([]string, 12)
	orgs := make([]tenancy.OrgID, 12)
	errs := together(12, func(i int) (err error) {
		orgs[i], keys[i], err = w.CreateEnterpriseUser(t.Context(), signed, site(i))
		return err
	})
	if got := kinds(errs); got[""] != 1 || got[fault.Conflict] != 11 {
		t.Fatalf("got %v, want one account", got)
	}
	for i, err := range errs {
		if err != nil {
			continue
		}
		p, err := w.Authenticate(t.Context(), keys[i])
		if err != nil || p.Org != orgs[i] {
			t.Errorf("the key: got %+v, %v, want the organization %s", p, err, orgs[i])
		}
		w.wantAudit(orgs[i], tenancy.ActionKeyCreated, 1)
		w.wantAudit(orgs[i], tenancy.ActionOrganizationCreated, 1)
	}
	for _, table := range []string{"person where email = 'ada@example.com' and password_hash = '' and not verified", "organization", "api_key", "used_request", "instance_event"} {
		w.wantCount(1, table)
	}
	for i, c := range []map[string]any{w.claims("other", "ada@example.com"), w.claims("other", "ADA@example.com")} {
		_, _, err := w.CreateEnterpriseUser(t.Context(), sign(t, jose.HS256, []byte(enterpriseKey), c), from(""))
		wantFault(t, fmt.Sprintf("an address in use, %d", i), err, fault.Conflict)
	}
	w.wantCount(1, "organization")
	w.advance(5*time.Minute + 31*time.Second + 2*skew)
	if _, err := w.PruneExpired(t.Context()); err != nil {
		t.Error(err)
	}
	w.wantCount(0, "used_request")
	_, _, err := w.CreateEnterpriseUser(t.Context(), signed, from(""))
	wantFault(t, "the request after its mark is gone", err, fault.Invalid)
}
