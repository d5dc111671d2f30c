package boot

import (
	"net"
	"strings"
	"testing"
)

func TestListen_IPv4HostListensOnIPv4Only(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"0.0.0.0:0": "0.0.0.0:", "127.0.0.1:0": "127.0.0.1:"} {
		ln, err := listen(t.Context(), addr, "HOST", "PORT")
		if err != nil {
			t.Error(err)
			continue
		}
		if got := ln.Addr().String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s listens on %s, want %s", addr, got, want)
		}
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestListen_ErrorNamesSetting(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for addr, want := range map[string]string{
		taken.Addr().String(): "is another service using this port? Set PORT.",
		"192.0.2.1:0":         "HOST must name an address of this machine.",
		"no..name:0":          "HOST must name an address of this machine.",
	} {
		ln, err := listen(t.Context(), addr, "HOST", "PORT")
		if err == nil {
			t.Errorf("%s listens on %s", addr, ln.Addr())
		} else if got := errorText(err); !strings.HasPrefix(got, "Cannot listen on "+addr+": "+want) {
			t.Errorf("%s: %s; want %s", addr, got, want)
		}
	}
}
