package edge

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"
)

// A mistake in the route table, such as an unknown name or a limit for another credential, must not
// open a route.
func TestGuards_RefuseRouteWithInvalidGuards(t *testing.T) {
	t.Parallel()
	g := unstarted("").newGuards()
	for _, r := range []Route{
		{}, {Credential: "key", Limits: read}, {Credential: apiKey, Limits: Limits{}},
		{Credential: apiKey, Limits: Limits{"forgotten", []audience{programs}, func(*guards) []fiber.Handler { return nil }}}, {Credential: none, Limits: write},
		{Credential: member, Limits: read}, {Credential: apiKey, Limits: user}, {Credential: person, Limits: form},
	} {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Get("/", append(g.before(r), func(c *fiber.Ctx) error { return c.SendStatus(http.StatusOK) })...)
		res, err := app.Test(httptest.NewRequest(http.MethodGet, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusInternalServerError {
			t.Errorf("a route with %q and %q answers %d, want 500", r.Credential, r.Limits, res.StatusCode)
		}
	}
}
