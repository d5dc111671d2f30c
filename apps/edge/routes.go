package edge

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/appapi"
	"crier/apps/edge/publicv1"
	"crier/apps/edge/route"
)

// The two places of the public API; the second answers the list of posts in an envelope.
const (
	publicPrefix = "/public/v1"
	aliasPrefix  = "/api/public/v1"
)

// routes is the whole table. What is built answers; every other route of the interface answers 501 behind its authentication.
func (s *Server) routes() {
	s.table = route.New(s.deps.Version, s.cfg.frontend()+"/billing")
	s.security()
	quick := s.table.With(s.deadline(s.cfg.Timeout))
	slow := s.table.With(s.deadline(s.cfg.UploadTimeout))

	writes, known := s.limited(writesAtOnce), s.table.With(s.key, s.admit)
	public := publicv1.Tables{
		JSON:   known.With(s.body(s.cfg.BodyLimit, ordinaryValues), s.deadline(s.cfg.Timeout), byMethod(s.limitedAnswers(readsAtOnce), writes)),
		Create: known.With(s.limitedBodies(s.cfg.PostLimit), s.body(s.cfg.PostLimit, 0), s.deadline(s.cfg.Timeout), writes),
		List:   known.With(s.deadline(s.cfg.Timeout), s.limitedAnswers(listsAtOnce)),
		Stream: slow.With(s.key, s.admit, s.limited(uploadsAtOnce), s.upload),
	}
	api := s.publicAPI()
	api.Mount(public, publicPrefix, false)
	api.Mount(public, aliasPrefix, true)

	s.session = s.appAPI()
	quickly := s.deadline(s.cfg.Timeout)
	s.session.Mount(s.table, appapi.Bodies{
		None:    []fiber.Handler{quickly},
		Known:   []fiber.Handler{s.body(s.cfg.BodyLimit, ordinaryValues), quickly},
		Limited: s.limited(sessionsAtOnce),
		Login:   s.openBodies(loginBodies, loginBody),
		Connect: s.openBodies(connectBodies, connectBody),
	})
	s.mountFiles(slow)
	s.mountDocs(quick)
	s.mountSandbox(quick)
}

// security names the credentials in the document.
func (s *Server) security() {
	doc := s.table.API().OpenAPI()
	doc.Info.Description = "Publish posts to social platforms, on time and once."
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key":     {Type: "apiKey", In: "header", Name: "Authorization", Description: "The API key as it is, without Bearer."},
		"cookie":  {Type: "apiKey", In: "cookie", Name: "auth", Description: "The dashboard's session. Unsafe requests must come from the service's own pages."},
		"session": {Type: "apiKey", In: "header", Name: "auth", Description: "The same session in a header."},
	}
}
