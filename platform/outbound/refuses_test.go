package outbound

import (
	"net"
	"testing"
)

func TestRefusesOnlyWhatIsRefused(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	if Refuses(t.Context(), at) {
		t.Error("a listener is told to refuse")
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if !Refuses(t.Context(), at) {
		t.Error("a closed port is not told to refuse")
	}
	if Refuses(t.Context(), "nobody.invalid:1") || Refuses(t.Context(), "nonsense") {
		t.Error("what cannot be asked is told to refuse")
	}
}
