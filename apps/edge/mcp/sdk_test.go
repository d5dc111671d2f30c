package mcp_test

import (
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crier/tests/edgetest"
)

// withToken adds a credential to each request.
type withToken struct {
	http.RoundTripper
	credential string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.credential)
	return w.RoundTripper.RoundTrip(r)
}

// TestSDK_ClientUsesTools: the Go SDK's own client connects, lists the tools and calls them. It
// checks structured content against the tools' schemas.
func TestSDK_ClientUsesTools(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for name, options := range map[string]*sdk.ClientOptions{"newest protocol": nil} {
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
		session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
			Endpoint:   s.URL + "/mcp",
			HTTPClient: &http.Client{Transport: withToken{RoundTripper: s.Client, credential: writer}},
		}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 16 {
			t.Fatalf("%s: got %v and %v, want 16 tools", name, tools, err)
		}
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "service_list_channels", Arguments: map[string]any{}})
		if err != nil || got.IsError || got.StructuredContent == nil {
			t.Errorf("%s: got %+v and %v, want channels", name, got, err)
		}
		got, err = session.CallTool(t.Context(), &sdk.CallToolParams{
			Name: "service_find_slot", Arguments: map[string]any{"channel": edgetest.KeyID.String()},
		})
		if err != nil || !got.IsError || got.StructuredContent != nil {
			t.Errorf("%s: got %+v and %v, want an error as a result", name, got, err)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: closing: %v", name, err)
		}
	}
}
