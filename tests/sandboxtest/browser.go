package sandboxtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// App is an application registered with a sandbox.
type App struct {
	ClientID  string   `json:"clientId"`
	Secret    string   `json:"secret"`
	Redirects []string `json:"redirects"`
	// TokenSeconds is the lifetime of an access token in seconds. 0 means an hour.
	TokenSeconds int `json:"tokenSeconds,omitempty"`
}

// AddApp registers an application.
func (j Judge) AddApp(ctx context.Context, app App) error {
	return j.ask(ctx, http.MethodPost, "oauth/apps", app, nil)
}

// Revoke ends all access that a user has granted.
func (j Judge) Revoke(ctx context.Context, user string) error {
	return j.ask(ctx, http.MethodPost, "oauth/revoke", map[string]string{"user": user}, nil)
}

// Consent is what a person does on the consent page.
type Consent struct {
	User string
	Deny bool
	// Withhold is a permission that the person does not grant, or "".
	Withhold string
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// Browse opens the address of a consent page like a browser, submits its form, and returns the
// address to which the sandbox redirects.
func (j Judge) Browse(ctx context.Context, address string, c Consent) (string, error) {
	page, _, err := browse(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	form := url.Values{"user": {c.User}, "decision": {"allow"}}
	for _, m := range hiddenInput.FindAllStringSubmatch(page, -1) {
		form.Set(unescape(m[1]), unescape(m[2]))
	}
	for _, scope := range []string{"publish", "insights"} {
		if scope != c.Withhold {
			form.Add("allow", scope)
		}
	}
	if c.Deny {
		form.Set("decision", "deny")
	}
	action, _, _ := strings.Cut(address, "?")
	_, location, err := browse(ctx, http.MethodPost, action, form)
	if err == nil && location == "" {
		err = fmt.Errorf("the consent page of %s does not redirect", address)
	}
	return location, err
}

func unescape(s string) string {
	return strings.NewReplacer("&#43;", "+", "&amp;", "&", "&#34;", `"`, "&#39;", "'").Replace(s)
}

// browse makes one request like a browser that does not follow redirects.
func browse(ctx context.Context, method, address string, form url.Values) (page, location string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = res.Body.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode >= 400 {
		err = fmt.Errorf("%s %s is answered with %d %s", method, address, res.StatusCode, raw)
	}
	return string(raw), res.Header.Get("Location"), err
}
