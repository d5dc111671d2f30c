package contract

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/publishing"
)

// TestOutgoing_HiddenAndMissingHostsLookAlike checks that a tenant who names an address does not
// learn whether its host exists in the instance's network. A refusal may only name the port, if it
// can never be reached.
func TestOutgoing_HiddenAndMissingHostsLookAlike(t *testing.T) {
	t.Parallel()
	for name, call := range callsToHost(t, common(t).organization(t)) {
		for _, port := range []string{"", ":8443"} {
			hidden, missing := call("localhost"+port), call("no-such-host.invalid"+port)
			if hidden != missing || hidden == "" {
				t.Errorf("%s says %q of a host that is not public and %q of one that does not exist", name, hidden, missing)
			}
			if names := strings.Contains(hidden, "443 can be reached") || strings.Contains(hidden, "ones that can be reached"); names != (port != "") {
				t.Errorf("%s at the port %q says %q, want the ports that can be reached if it is another one", name, port, hidden)
			}
		}
	}
}

// callsToHost returns the calls in which a tenant can name a host. Each returns what the service
// says about the host.
func callsToHost(t *testing.T, o org) map[string]func(host string) string {
	t.Helper()
	ask := o.dashboard(t)
	return map[string]func(host string) string{
		"upload-from-url": func(host string) string {
			return o.do(t, http.MethodPost, "/upload-from-url", m{"url": "https://" + host + "/a.png"}).want(t, 400).Body
		},
		"a stream": func(host string) string {
			a := ask(http.MethodGet, "/public/stream?url="+url.QueryEscape("https://"+host+"/a.mp4"), nil)
			return a.want(t, 400).Body
		},
		"a try": func(host string) string {
			path := "/webhooks/send?url=" + url.QueryEscape("https://"+host+"/")
			return ask(http.MethodPost, path, m{}).Body
		},
		"a connect": func(host string) string {
			state, err := o.app.Channels.Begin(t.Context(), o.who, publishing.BeginConnect{Connector: "bluesky"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = o.app.Channels.Finish(t.Context(), publishing.FinishConnect{Connector: "bluesky", State: state, Fields: map[string]string{
				"service": "https://" + host, "identifier": "somebody.example.com", "password": "abcd-efgh-ijkl-mnop",
			}})
			var f *fault.Error
			if !errors.As(err, &f) || f.Kind != fault.Invalid {
				t.Fatalf("a connect: %v, want Invalid", err)
			}
			return f.Message
		},
	}
}
