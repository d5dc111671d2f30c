package contract

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// fault scripts the pretend platform for one account.
func (r *rig) fault(t *testing.T, c channel, action string, match, more m) {
	t.Helper()
	body := m{"account": c.account, "match": match, "action": action}
	for k, v := range more {
		body[k] = v
	}
	r.platform(t, http.MethodPost, "/_sim/faults", body).want(t, http.StatusCreated)
}

func (r *rig) platform(t *testing.T, method, path string, body any) answer {
	t.Helper()
	var in io.Reader = http.NoBody
	if body != nil {
		in = strings.NewReader(string(encode(t, body)))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.sandbox+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}

// published is what the judge has of an account, oldest first.
func (r *rig) published(t *testing.T, c channel) []m {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.sandbox+"/_sim/posts?account="+c.account, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Posts []m }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out.Posts
}

// texts is what an account published, oldest first.
func (r *rig) texts(t *testing.T, c channel) string {
	t.Helper()
	var out []string
	for _, p := range r.published(t, c) {
		out = append(out, p["text"].(string))
	}
	return strings.Join(out, " | ")
}
