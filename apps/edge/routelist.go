package edge

// Routes returns the routes that work and those of the interface that answer 501. It needs no running service.
func Routes() (built, missing []Route) {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}}
	s.routes()
	return s.table.Built(), s.table.NotBuilt()
}

// AddedRoutes returns the routes that are not in the interface and answer 501.
func AddedRoutes() []Route {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}}
	s.routes()
	return s.table.NotBuiltAdded()
}
