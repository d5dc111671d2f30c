package edge

import "crier/apps/edge/docs"

//go:generate go test . -run TestOpenAPI -update

// renderSite renders the OpenAPI document and the documentation pages. The pages list the Missing
// routes but not the Planned ones. Any error is Internal.
func (s *Server) renderSite() (*docs.Site, error) {
	document, err := s.document()
	if err != nil {
		return nil, err
	}
	o := docs.Options{BaseURL: s.cfg.Base(), Limits: docs.Limits{
		Instance: s.deps.Limits, Writes: maxWrites, Lists: maxLists, Reads: maxReads, Statistics: maxStatistics,
		Uploads: maxUploads, Fetches: maxFetches, Wait: placeTimeout, Timeout: s.cfg.Timeout,
		UploadTimeout: s.cfg.UploadTimeout, PostBody: s.cfg.PostLimit, Body: s.cfg.BodyLimit,
		UploadBody: s.cfg.UploadLimit, Headers: headerLimit,
	}}
	for _, r := range s.table {
		if r.State == Missing {
			o.Missing = append(o.Missing, r.String())
		}
	}
	return docs.New(s.lines.API().OpenAPI(), document, o)
}

// document returns the OpenAPI document as JSON, including the examples for the public API. Every
// call returns the same bytes. Any error is Internal.
func (s *Server) document() ([]byte, error) {
	if err := docs.AddExamples(s.lines.API().OpenAPI()); err != nil {
		return nil, err
	}
	return s.lines.Document()
}
