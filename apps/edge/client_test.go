package edge_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/tests/edgetest"
)

var loggedClient = regexp.MustCompile(`login failed.* client=(\S+) account=([0-9a-f]+)`)

// clientOf returns the client address that the service logs for a failed log-in with these headers.
func clientOf(t *testing.T, r *edgetest.Service, headers ...string) string {
	t.Helper()
	before := len(r.Log.String())
	a := r.Call(t, "POST", "/auth/login", edgetest.WrongLoginBody, append([]string{"Content-Type", "application/json"}, headers...)...)
	found := loggedClient.FindStringSubmatch(r.Log.String()[before:])
	if a.Status != 400 || found == nil {
		t.Fatalf("got %d %s, want 400 and a logged client: %s", a.Status, a.Body, r.Log.String()[before:])
	}
	return found[1]
}

func TestClient_IsNearestUntrustedAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string // of X-Forwarded-For
		want  string
	}{
		"no line":                                 {lines: nil, want: "127.0.0.1"},
		"one address":                             {lines: []string{"203.0.113.9"}, want: "203.0.113.9"},
		"an address that a client wrote":          {lines: []string{"10.9.9.9, 203.0.113.9"}, want: "203.0.113.9"},
		"a line that a client wrote":              {lines: []string{"10.9.9.9", "203.0.113.9"}, want: "203.0.113.9"},
		"two lines of a client":                   {lines: []string{"10.9.9.9", "10.0.0.1, 127.0.0.1", "203.0.113.9"}, want: "203.0.113.9"},
		"a chain of proxies over two lines":       {lines: []string{"198.51.100.7, 203.0.113.9, 10.0.0.1", "10.0.0.1"}, want: "203.0.113.9"},
		"only proxies":                            {lines: []string{"10.0.0.1"}, want: "10.0.0.1"},
		"an address with a port":                  {lines: []string{"203.0.113.9:1234"}, want: "203.0.113.9"},
		"white space":                             {lines: []string{" \t203.0.113.9 \t"}, want: "203.0.113.9"},
		"the /64 of an IPv6 address":              {lines: []string{"2001:db8:1:2:3:4:5:6"}, want: "2001:db8:1:2::/64"},
		"the /64 of a zoned address":              {lines: []string{"fe80::1%eth0"}, want: "fe80::/64"},
		"IPv6 in brackets":                        {lines: []string{"[2001:db8:1:2::1]"}, want: "2001:db8:1:2::/64"},
		"IPv6 with a port":                        {lines: []string{"[2001:db8:1:2::1]:443"}, want: "2001:db8:1:2::/64"},
		"IPv4 in the form of IPv6":                {lines: []string{"::ffff:203.0.113.9"}, want: "203.0.113.9"},
		"a proxy in the form of IPv6 with a port": {lines: []string{"203.0.113.9, [::ffff:10.0.0.1]:80"}, want: "203.0.113.9"},
		"a hidden address":                        {lines: []string{"unknown"}, want: "unknown"},
		"a name":                                  {lines: []string{"203.0.113.9, proxy.internal"}, want: "unknown"},
		"an empty line":                           {lines: []string{""}, want: "unknown"},
		"an empty hop":                            {lines: []string{"203.0.113.9,"}, want: "unknown"},
		"an empty hop behind a proxy":             {lines: []string{"203.0.113.9, , 10.0.0.1"}, want: "unknown"},
		"an empty last line":                      {lines: []string{"203.0.113.9", ""}, want: "unknown"},
		"IPv4 in brackets":                        {lines: []string{"[203.0.113.9]"}, want: "unknown"},
		"half a bracket":                          {lines: []string{"[2001:db8::1"}, want: "unknown"},
		"an unreadable entry that is not needed":  {lines: []string{"nonsense, 203.0.113.9"}, want: "203.0.113.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1, ::ffff:10.0.0.0/120"})
			var headers []string
			for _, line := range c.lines {
				headers = append(headers, "X-Forwarded-For", line)
			}
			if got := clientOf(t, s, headers...); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSite_IsLargestNetworkOfSubscriber(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1"})
	for from, site := range map[string]string{
		"203.0.113.9":          "203.0.113.9",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1::/48",
		"2001:db8:1:ffff::1":   "2001:db8:1::/48",
		"a name":               "unknown",
	} {
		a := s.Call(t, "POST", "/auth/login", `{"email":"ada@example.org","password":"site"}`,
			"Content-Type", "application/json", "X-Forwarded-For", from)
		if !strings.Contains(a.Body, "The site is "+site+".") {
			t.Errorf("%s: got %s, want the site %s", from, a.Body, site)
		}
	}
}

func TestClient_IsPeerWithoutTrustedProxies(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	if got := clientOf(t, s, "X-Forwarded-For", "203.0.113.9", "Forwarded", "for=203.0.113.9", "X-Real-IP", "203.0.113.9"); got != "127.0.0.1" {
		t.Errorf("got %q, want the address of the connection", got)
	}
}

func TestForwardingHeader_FromUntrustedPeerIsLoggedOncePerMinute(t *testing.T) {
	t.Parallel()
	const words = "is not in TRUSTED_PROXIES"
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP"} {
		h := edgetest.NewClock()
		s := edgetest.New(t, nil, func(d *edge.Deps) { d.Clock = h })
		logged := func() int { return strings.Count(s.Log.String(), words) }
		s.Call(t, "GET", "/health", "")
		if n := logged(); n != 0 {
			t.Errorf("%d lines without %s", n, header)
		}
		for range 3 {
			s.Call(t, "GET", "/health", "", header, "203.0.113.9")
		}
		if n := logged(); n != 1 || !strings.Contains(s.Log.String(), "level=WARN") {
			t.Errorf("%s: %d lines after three requests, want one warning: %s", header, n, s.Log)
		}
		h.Forward(time.Minute)
		s.Call(t, "GET", "/health", "", header, "203.0.113.9")
		if n := logged(); n != 2 {
			t.Errorf("%s: %d lines a minute later, want 2", header, n)
		}
		trusted := edgetest.New(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1"})
		trusted.Call(t, "GET", "/health", "", header, "203.0.113.9")
		if strings.Contains(trusted.Log.String(), words) {
			t.Errorf("%s of a trusted proxy is logged as that of an untrusted address", header)
		}
	}
}

func TestForwardingHeader_IgnoredOneOfTrustedProxyIsLogged(t *testing.T) {
	t.Parallel()
	const words = "names its clients in a header that is not read"
	for name, c := range map[string]struct {
		headers []string
		want    int // lines after three requests
	}{
		"none":                           {headers: nil, want: 0},
		"X-Forwarded-For":                {headers: []string{"X-Forwarded-For", "203.0.113.9"}, want: 0},
		"X-Forwarded-For beside another": {headers: []string{"X-Real-IP", "203.0.113.9", "X-Forwarded-For", "203.0.113.9"}, want: 0},
		"only X-Real-IP":                 {headers: []string{"X-Real-IP", "203.0.113.9"}, want: 1},
		"only Forwarded":                 {headers: []string{"Forwarded", "for=203.0.113.9"}, want: 1},
	} {
		h := edgetest.NewClock()
		s := edgetest.New(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1"}, func(d *edge.Deps) { d.Clock = h })
		for range 3 {
			s.Call(t, "GET", "/health", "", c.headers...)
		}
		if n := strings.Count(s.Log.String(), words); n != c.want {
			t.Errorf("%s: %d lines, want %d: %s", name, n, c.want, s.Log)
		}
	}
}
