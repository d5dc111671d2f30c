package connector

import (
	"net/url"
	"slices"
	"strings"

	"crier/platform/text"
)

// Destination returns the hosts of the given URLs in the form of Account.Destination: in lower
// case, sorted, without duplicates, separated by commas, and truncated to 255 bytes. It includes
// the port unless that is the scheme's default. It skips invalid URLs. Example:
// https://PDS.example:8443/xrpc becomes pds.example:8443
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
	return text.Line(strings.Join(slices.Compact(hosts), ","), maxDestination)
}

var usualPorts = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}
