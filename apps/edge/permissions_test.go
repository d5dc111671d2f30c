package edge

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/gofiber/fiber/v2"

	"crier/platform/fault"
	"crier/tenancy"
)

// TestPermissions_EveryCredentialIsInEachTable: a credential that one of the tables lacks would open its routes, or close
// them.
func TestPermissions_EveryCredentialIsInEachTable(t *testing.T) {
	t.Parallel()
	listed := slices.Sorted(maps.Keys(permissions))
	for name, other := range map[string][]Credential{
		"limitsOf": slices.Sorted(maps.Keys(limitsOf)), "guards": slices.Sorted(maps.Keys(unstarted("").newGuards().credentials)),
	} {
		if !slices.Equal(listed, other) {
			t.Errorf("permissions has the credentials %q, and %s %q", listed, name, other)
		}
	}
}

// TestPermit_NoPrincipalIsRefused: a guard that forgot to find the principal would not open routes with conditions.
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
