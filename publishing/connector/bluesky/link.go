package bluesky

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

const maxURI = 2000 // bytes; a longer link stays plain text

// asciiURI returns a link in the form that records require: the scheme and host in ASCII, and the
// rest percent-encoded where necessary. It returns false if the link has no host, contains
// credentials or is longer than maxURI.
func asciiURI(link string) (string, bool) {
	start := strings.Index(link, "://") + len("://")
	end := start + strings.IndexAny(link[start:]+"/", `/?#\`)
	u, err := url.Parse(link[:end])
	if err != nil || u.Hostname() == "" || u.User != nil {
		return "", false
	}
	host, err := asciiHost(u)
	uri := strings.ToLower(link[:start]) + host + escape(link[end:])
	return uri, err == nil && len(uri) <= maxURI
}

func asciiHost(u *url.URL) (string, error) {
	if !strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }) {
		return u.Host, nil
	}
	name, err := idna.Lookup.ToASCII(u.Hostname())
	if port := u.Port(); port != "" {
		name += ":" + port
	}
	return name, err
}

// escape percent-encodes the bytes that a URI cannot contain. It leaves existing escapes unchanged.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c > '~' || strings.IndexByte("\"<>\\^`{|}", c) >= 0 || c == '%' && !escaped(s[i+1:]) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func escaped(after string) bool {
	if len(after) < 2 {
		return false
	}
	_, err := hex.DecodeString(after[:2])
	return err == nil
}
