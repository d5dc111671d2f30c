package connector

import (
	"net/url"
	"slices"
	"strings"
)

// Destination returns the hosts of these addresses, as Account.Destination has them: lower case, with the port where it
// is not the usual one of the scheme, each once, sorted, joined by commas and cut to 255 bytes.
func Destination(addresses ...string) string {
	var hosts []string
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			continue
		}
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if port := u.Port(); port != "" && port != usualPorts[strings.ToLower(u.Scheme)] {
			host += ":" + port
		}
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	return Clean(strings.Join(slices.Compact(hosts), ","), maxDestination)
}

var usualPorts = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}
