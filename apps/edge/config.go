package edge

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"crier/apps/edge/request"
	"crier/platform/env"
	"crier/platform/secret"
)

// Config holds the edge's settings, which are read from environment variables. Validate checks
// them.
type Config struct {
	// BaseURL defaults to http://localhost:PORT. The default is allowed only if Host is on
	// loopback.
	BaseURL string `env:"BASE_URL" doc:"Public URL of the service; required unless HOST is on loopback."`
	// FrontendURL defaults to BaseURL/app.
	FrontendURL string `env:"FRONTEND_URL" doc:"URL of the dashboard; defaults to BASE_URL/app."`
	// MainURL is the URL of a second site, in addition to FrontendURL, whose pages may use the
	// service with a session.
	MainURL string `env:"MAIN_URL" doc:"URL of a second site whose pages can use the service with a session."`
	Host    string `env:"HOST, default=127.0.0.1" doc:"Host name or IP address to listen on."`
	Port    int    `env:"PORT, default=4000" doc:"Port to listen on."`
	// TrustedProxies lists addresses and networks. Example: 10.0.0.0/8
	TrustedProxies []string `env:"TRUSTED_PROXIES" doc:"IP addresses and networks of proxies whose X-Forwarded-For header is trusted."`

	BodyLimit   int64 `env:"BODY_LIMIT, default=1048576" doc:"Maximum size of a JSON body, in bytes."`
	PostLimit   int64 `env:"POST_BODY_LIMIT, default=10485760" doc:"Maximum size of a POST /posts body, in bytes."`
	UploadLimit int64 `env:"UPLOAD_BODY_LIMIT, default=1074790400" doc:"Maximum size of an upload request, in bytes."`

	Timeout       time.Duration `env:"REQUEST_TIMEOUT, default=30s" doc:"Time limit for receiving a request, including its body."`
	UploadTimeout time.Duration `env:"UPLOAD_TIMEOUT, default=1h" doc:"Time limit for an upload or a download."`
	// UploadRate is the minimum average speed of an upload or download, in bytes per second. It
	// applies once REQUEST_TIMEOUT has passed.
	UploadRate int64 `env:"UPLOAD_MIN_RATE, default=4096" doc:"Minimum average speed of an upload or download, in bytes a second."`

	// MaxConns also counts connections from TrustedProxies and loopback.
	MaxConns int `env:"MAX_CONNECTIONS, default=16384" doc:"Maximum total number of open connections; further connections are closed immediately."`
	// ClientConns applies to each IPv4 address and each IPv6 /64 network. A /48 network may have
	// four times as many connections. TrustedProxies and loopback are exempt. If ClientConns is 0,
	// clients are not limited.
	ClientConns int `env:"CLIENT_MAX_CONNECTIONS, default=256" doc:"Maximum number of open connections per client address; 0: no limit."`
	// MobileScheme is a URL with the app's own scheme. Example: crier://callback
	MobileScheme string `env:"MOBILE_APP_SCHEME" doc:"URL that opens the mobile app after a sign-in that began in the app, such as crier://callback."`
	// AppLimit is counted in fixed windows of one minute.
	AppLimit int `env:"APP_LIMIT, default=600" doc:"Maximum number of requests a minute per session."`
	// MCPOrigins lists origins in the form that browsers send. Example: https://agent.example
	MCPOrigins []string `env:"MCP_ORIGINS" doc:"Origins, besides the service's own, whose pages can call the MCP server."`
	// MCPKeyInPath puts API keys into URLs, where proxies may log them.
	MCPKeyInPath bool `env:"MCP_KEY_IN_PATH, default=false" doc:"Also accept API keys at /mcp/{apiKey}, for MCP clients that cannot send headers."`
	// MonitorToken must have at least 16 characters. If it is empty, /monitor/queue is served only
	// on METRICS_LISTEN.
	MonitorToken secret.Text `env:"MONITOR_TOKEN" doc:"X-Monitor-Token value that allows access to /monitor/queue on the public address."`
}

const (
	minMonitorToken = 16      // characters
	maxBody         = 1 << 40 // bytes
	maxConns        = 1_000_000
	maxRequests     = math.MaxInt32 // a minute
)

// Validate returns an error that joins all configuration faults, or nil if there are none.
// errors.As finds an env.Fault in the error.
func (c Config) Validate() error {
	var faults env.Faults
	c.validateAddresses(&faults)
	faults.Number("PORT", int64(c.Port), 0, 65535)
	faults.Number("BODY_LIMIT", c.BodyLimit, 1, maxBody)
	faults.Number("POST_BODY_LIMIT", c.PostLimit, 1, maxBody)
	faults.Number("UPLOAD_BODY_LIMIT", c.UploadLimit, 1, maxBody)
	faults.Duration("REQUEST_TIMEOUT", c.Timeout, time.Millisecond, 24*time.Hour)
	faults.Duration("UPLOAD_TIMEOUT", c.UploadTimeout, time.Millisecond, 7*24*time.Hour)
	faults.Number("UPLOAD_MIN_RATE", c.UploadRate, 1, maxBody)
	faults.Number("MAX_CONNECTIONS", int64(c.MaxConns), 1, maxConns)
	faults.Number("CLIENT_MAX_CONNECTIONS", int64(c.ClientConns), 0, maxConns)
	faults.Number("APP_LIMIT", int64(c.AppLimit), 1, maxRequests)
	if n := len(c.MonitorToken); n > 0 && n < minMonitorToken {
		faults.Add("MONITOR_TOKEN", "must have at least 16 characters")
	}
	if c.MobileScheme != "" && !isAppAddress(c.MobileScheme) {
		faults.Add("MOBILE_APP_SCHEME", "must be the URL of an app, such as crier://callback")
	}
	for _, o := range c.MCPOrigins {
		if u, err := url.Parse(o); err != nil || u.Host == "" || origin(o) != o {
			faults.Add("MCP_ORIGINS", "must be origins such as https://agent.example, separated by commas, without a path")
			break
		}
	}
	if _, err := parseProxies(c.TrustedProxies); err != nil {
		faults.Add("TRUSTED_PROXIES", err.Error())
	}
	return faults.Err()
}

func (c Config) validateAddresses(faults *env.Faults) {
	const mustBeURL = "must be an http or https URL without a query"
	switch {
	case c.BaseURL == "" && !request.IsLoopback(c.Host):
		faults.Add("BASE_URL",
			"must be set if HOST is not on loopback: cookies and file URLs are derived from it")
	case c.BaseURL != "" && !isBaseURL(c.BaseURL):
		faults.Add("BASE_URL", mustBeURL)
	}
	if c.FrontendURL != "" && !isBaseURL(c.FrontendURL) {
		faults.Add("FRONTEND_URL", mustBeURL)
	}
	if c.MainURL != "" && !isBaseURL(c.MainURL) {
		faults.Add("MAIN_URL", mustBeURL)
	}
}

// Address returns the address to listen on, as host:port.
func (c Config) Address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

// Base returns BASE_URL or its default, without a trailing slash.
func (c Config) Base() string {
	if c.BaseURL == "" {
		return "http://localhost:" + strconv.Itoa(c.Port)
	}
	return strings.TrimRight(c.BaseURL, "/")
}

// Warnings returns a sentence for each setting that is valid but probably a mistake.
func (c Config) Warnings() []string {
	u, err := url.Parse(c.Base())
	if err != nil || u.Scheme != "http" {
		return nil
	}
	if !request.IsLoopback(u.Hostname()) {
		return []string{"BASE_URL is an http address: passwords and API keys are sent in the clear, " +
			"and browsers cannot sign in, because they send the session cookie only over https. Use https."}
	}
	if !request.IsLoopback(c.Host) {
		return []string{"BASE_URL is an http address and HOST is not on loopback: passwords, API keys and " +
			"session cookies from other machines are sent in the clear. " +
			"Use https, or make the service reachable only from this machine."}
	}
	return nil
}

// Frontend returns the dashboard's URL, without a trailing slash.
func (c Config) Frontend() string {
	if c.FrontendURL == "" {
		return c.Base() + "/app"
	}
	return strings.TrimRight(c.FrontendURL, "/")
}

// dashboards returns the origins of the sites, other than the service itself, whose pages may use
// the service with a session.
func (c Config) dashboards() []string {
	out := []string{origin(c.Frontend())}
	if c.MainURL != "" {
		out = append(out, origin(c.MainURL))
	}
	return out
}

// secure reports whether cookies are sent only over https. It returns true unless BASE_URL is an
// http URL on loopback.
func (c Config) secure() bool {
	u, err := url.Parse(c.Base())
	return err != nil || u.Scheme == "https" || !request.IsLoopback(u.Hostname())
}

var appAddress = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[A-Za-z0-9./-]*$`)

// isAppAddress reports whether s is a URL that opens an app. It rejects URLs that the browser
// itself opens, because these URLs could run a script or pass a sign-in code to a website.
func isAppAddress(s string) bool {
	scheme, _, _ := strings.Cut(s, ":")
	browsers := []string{
		"http", "https", "ws", "wss", "ftp", "file", "javascript", "data", "blob", "about", "view-source",
	}
	return appAddress.MatchString(s) && !slices.Contains(browsers, scheme)
}

// isBaseURL reports whether s is an http or https URL without a user, query or fragment.
func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return u.Hostname() != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

// origin returns the origin of a URL in the form that browsers send, without a default port. It
// returns "" if s is not a URL. Example: HTTPS://Crier.example:443/app has the origin
// https://crier.example.
func origin(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host
}

// parseProxies parses the value of TRUSTED_PROXIES. Its error messages say what the value must be.
func parseProxies(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		s = strings.TrimSpace(s)
		p, err := netip.ParsePrefix(s)
		if err != nil {
			ip, err := netip.ParseAddr(s)
			if err != nil {
				return nil, fmt.Errorf(
					"must be addresses or networks such as 10.0.0.0/8, separated by commas: %q is neither", s)
			}
			p = netip.PrefixFrom(ip, ip.BitLen())
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			// Clients are compared as IPv4; see request.Normalize.
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		p = p.Masked()
		if tooWide(p) {
			return nil, fmt.Errorf("must name only networks of proxies: in %q, clients could choose their address; "+
				"the widest networks are /8 for IPv4, /16 for IPv6, and fc00::/7, which is private", s)
		}
		out = append(out, p)
	}
	return out, nil
}

// tooWide reports whether a masked network has more addresses than proxies can possibly need. If
// such a network were trusted, clients inside it could choose the address under which they are
// counted.
func tooWide(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return p.Bits() < 8
	}
	return p.Bits() < 7 || p.Bits() < 16 && !p.Addr().IsPrivate()
}
