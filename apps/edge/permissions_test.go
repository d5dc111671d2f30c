package edge

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"

	"crier/platform/fault"
	"crier/tenancy"
)

// TestCredentials_HaveCompleteRules: a credential with a missing rule would open or block its
// routes.
func TestCredentials_HaveCompleteRules(t *testing.T) {
	t.Parallel()
	for c, of := range credentials {
		if of.audience == "" || of.find == nil || of.again == nil {
			t.Errorf("%q lacks a rule: %+v", c, of)
		}
		if session := of.audience == members || of.audience == people; session && of.again(unstarted("")) == nil {
			t.Errorf("%q is a session that is not looked up again", c)
		}
	}
}

// TestPermit_NoPrincipalIsRefused: a route stays closed even if a guard forgets to find the
// principal.
func TestPermit_NoPrincipalIsRefused(t *testing.T) {
	t.Parallel()
	if err := hasAccess(tenancy.Principal{Access: "unheard of"}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("an unknown access: got %v, want Forbidden", err)
	}
	for _, r := range []Route{{Credential: admin}, {Credential: owner}, {Credential: instance}} {
		app := fiber.New(fiber.Config{DisableStartupMessage: true, ErrorHandler: unstarted("").refuse})
		app.Get("/", permit(r), func(c *fiber.Ctx) error { return c.SendStatus(http.StatusOK) })
		res, err := app.Test(httptest.NewRequest(http.MethodGet, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s without a principal is answered with %d, want 403", r.Credential, res.StatusCode)
		}
	}
}
