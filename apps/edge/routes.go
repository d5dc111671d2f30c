package edge

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/appapi"
	"crier/apps/edge/publicv1"
	"crier/apps/edge/route"
)

// The two prefixes of the public API. Under the second the list of posts is in an envelope.
const (
	publicPrefix = "/public/v1"
	aliasPrefix  = "/api/public/v1"
)

// routes fills the route table. The paths are in the packages publicv1 and appapi and in the mount methods of this one.
// Routes of the interface that are not built answer 501 behind their authentication.
func (s *Server) routes() {
	s.table = route.New(s.deps.Version, s.cfg.frontend()+"/billing")
	s.security()
	quick := s.table.With(s.deadline(s.cfg.Timeout))
	slow := s.table.With(s.deadline(s.cfg.UploadTimeout))

	writes, known := s.limitRequests(maxWrites), s.table.With(s.authenticate, s.admit)
	public := publicv1.Tables{
		JSON: known.With(s.readBody(s.cfg.BodyLimit, maxBodyValues), s.deadline(s.cfg.Timeout),
			byMethod(s.limitAnswers(maxReads), writes)),
		Create: known.With(s.limitBodies(s.cfg.PostLimit), s.readBody(s.cfg.PostLimit, 0), s.deadline(s.cfg.Timeout),
			writes),
		List:   known.With(s.deadline(s.cfg.Timeout), s.limitAnswers(maxLists)),
		Stream: slow.With(s.authenticate, s.admit, s.limitRequests(maxUploads), s.limitUpload),
	}
	api := s.publicAPI()
	api.Mount(public, publicPrefix, false)
	api.Mount(public, aliasPrefix, true)

	s.session = s.appAPI()
	quickly := s.deadline(s.cfg.Timeout)
	s.session.Mount(s.table, appapi.Bodies{
		None:    []fiber.Handler{quickly},
		Known:   []fiber.Handler{s.readBody(s.cfg.BodyLimit, maxBodyValues), quickly},
		Limited: s.limitRequests(maxSessions),
		Login:   s.openBodies(loginBodies, loginBody),
		Connect: s.openBodies(connectBodies, connectBody),
	})
	s.mountFiles(slow)
	s.mountDocs(quick)
	s.mountSandbox(quick)
}

// security describes the service and its credentials in the OpenAPI document.
func (s *Server) security() {
	doc := s.table.API().OpenAPI()
	doc.Info.Description = "Publish posts to social platforms, on time and once."
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "apiKey", In: "header", Name: "Authorization",
			Description: "The API key as it is, without Bearer."},
		"cookie": {Type: "apiKey", In: "cookie", Name: "auth",
			Description: "The dashboard's session. Unsafe requests must come from the service's own pages."},
		"session": {Type: "apiKey", In: "header", Name: "auth", Description: "The same session in a header."},
	}
}
