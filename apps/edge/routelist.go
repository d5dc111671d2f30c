package edge

// Routes lists the routes that work and those of the interface that do not yet, without a running service.
func Routes() (built, missing []Route) {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}}
	s.routes()
	return s.table.Built(), s.table.NotBuilt()
}

// RoutesBeyond lists the routes beside the interface that do not work yet.
func RoutesBeyond() []Route {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}}
	s.routes()
	return s.table.NotBuiltBeyond()
}
