package canary

import (
	"context"
	"fmt"
	"net"
	"strings"
)

// hosts are hosts of URLs that name addresses that are not public, in many forms.
var hosts = []string{
	// Loopback, in the forms that resolvers and libraries accept.
	"127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "017700000001", "0177.0.0.1", "0177.0.0.01",
	"0x7f000001", "0x7f.0.0.1", "0x7F.1", "127.0.0.1.", "0.0.0.0", "0", "0x0", "[::1]", "[0:0:0:0:0:0:0:1]", "[::]",
	"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::1%25lo]",
	"localhost", "LOCALHOST", "localhost.", "127。0。0。1", "127．0．0．1", "①②⑦.⓪.⓪.①", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
	// Translated addresses: NAT64, 6to4, Teredo.
	"[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]",
	// Private, carrier-grade NAT, link-local (including metadata services of clouds), unique local
	// and site-local addresses.
	"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.254", "169.254.169.254",
	"169.254.170.2", "[::ffff:169.254.169.254]", "[::ffff:10.0.0.1]", "[fe80::1%25lo]", "[fe80::1%25eth0]", "[fe80::1]",
	"[fd00::1]", "[fd00:ec2::254]", "[fec0::1]", "2852039166", "0xa9fea9fe",
	// Special-purpose, multicast and broadcast addresses.
	"192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
	"255.255.255.255", "[ff02::1]", "[2001:db8::1]", "[100::1]",
}

// URLs returns the hostile URLs. The scheme is http or https, or ws or wss for WebSockets. Example
// of a path: /cat.png. No service may connect to any of the URLs.
func (c *Canary) URLs(scheme, path string) []string {
	var out []string
	for _, host := range hosts {
		out = append(out, scheme+"://"+host+path)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		for _, port := range []int{c.Port, 80, 443, 22, 6379} {
			out = append(out, fmt.Sprintf("%s://%s:%d%s", scheme, host, port, path))
		}
	}
	return append(out,
		// Public addresses with other ports, and invalid ports.
		scheme+"://1.1.1.1:8080"+path, scheme+"://1.1.1.1:25"+path,
		scheme+"://127.0.0.1:080"+path, scheme+"://127.0.0.1:65616"+path,
		// Parts of a URL that look like the host.
		scheme+"://user@127.0.0.1"+path, scheme+"://user:password@127.0.0.1"+path,
		scheme+"://example.com@127.0.0.1"+path, scheme+"://example.com:80@127.0.0.1"+path,
		scheme+"://127.0.0.1#@example.com"+path, scheme+"://127.0.0.1?@example.com"+path,
		scheme+`://127.0.0.1\@example.com`+path, scheme+`://example.com\@127.0.0.1`+path,
		scheme+"://127.0.0.1%2f@example.com"+path, scheme+"://127.0.0.1%00.example.com"+path,
		scheme+"://127.0.0.1%0d%0aHost:x"+path, scheme+"://[::1]@127.0.0.1"+path,
		strings.ToUpper(scheme)+"://127.0.0.1"+path, " "+scheme+"://127.0.0.1"+path, scheme+":127.0.0.1"+path,
		scheme+":///127.0.0.1"+path, scheme+"://"+path, scheme+"://[::1"+path, scheme+"://::1"+path,
	)
}

// OtherSchemes returns URLs with other schemes, and texts that are not absolute URLs.
func (c *Canary) OtherSchemes() []string {
	at := fmt.Sprintf("127.0.0.1:%d", c.Port)
	return []string{
		"file:///etc/passwd", "file://" + at + "/cat.png", "ftp://" + at + "/cat.png", "gopher://" + at + "/_GET",
		"dict://" + at + "/x", "ldap://" + at + "/x", "tftp://" + at + "/x", "sftp://" + at + "/x",
		"jar:http://" + at + "!/x", "unix:///var/run/docker.sock", "http+unix://%2fvar%2frun%2fdocker.sock/x",
		"data:image/png;base64,iVBORw0KGgo=", "javascript:fetch('http://" + at + "')", "blob:http://" + at + "/x",
		"view-source:http://" + at, "ws://" + at + "/x", "//" + at + "/cat.png", "/cat.png", "cat.png", at, "127.0.0.1",
		"http", "http:", "http:/", "http//" + at, "\x00http://" + at,
	}
}

func resolverOf(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", address)
	}}
}
