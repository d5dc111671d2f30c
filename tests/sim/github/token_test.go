package github

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestToken_Formats(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	form := "application/x-www-form-urlencoded; charset=utf-8"
	for accept, want := range map[string]struct{ kind, begin, end string }{
		"":                            {form, "access_token=gho_", "&scope=read%3Auser%2Cuser%3Aemail&token_type=bearer"},
		"*/*":                         {form, "access_token=gho_", "&token_type=bearer"},
		"application/json":            {"application/json; charset=utf-8", `{"access_token":"gho_`, `","scope":"read:user,user:email","token_type":"bearer"}`},
		"text/html, application/json": {"application/json; charset=utf-8", `{"access_token":"gho_`, `}`},
		"application/xml": {"application/xml; charset=utf-8",
			"<OAuth><token_type>bearer</token_type><scope>read:user,user:email</scope><access_token>gho_", "</access_token></OAuth>"},
	} {
		header := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		if accept != "" {
			header["Accept"] = accept
		}
		got := r.send(http.MethodPost, pathToken, tokenForm(r.code(nil), nil), header)
		if got.status != http.StatusOK || got.header.Get("Content-Type") != want.kind ||
			!strings.HasPrefix(got.body, want.begin) || !strings.HasSuffix(got.body, want.end) {
			t.Errorf("Accept %q: got %d, %s, %s; want %s beginning %s and ending %s",
				accept, got.status, got.header.Get("Content-Type"), got.body, want.kind, want.begin, want.end)
		}
	}
}

func TestToken_AcceptsJSONInput(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	body := `{"client_id":"` + clientID + `","client_secret":"` + secret + `","code":"` + r.code(nil) +
		`","code_verifier":"` + verifier + `"}`
	got := r.send(http.MethodPost, pathToken, body,
		map[string]string{"Content-Type": "application/json", "Accept": "application/json"})
	token := decodeAs[tokenReply](r, got)
	if got.status != http.StatusOK || len(token.AccessToken) != 40 || token.TokenType != "bearer" {
		t.Errorf("got %d and %+v, want a token of 40 characters", got.status, token)
	}
}

func TestToken_DocumentedErrors(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		changes map[string]string
		want    tokenError
	}{
		"wrong secret":         {map[string]string{"client_secret": "x"}, errCredentials},
		"missing secret":       {map[string]string{"client_secret": "-"}, errCredentials},
		"unknown client":       {map[string]string{"client_id": "x"}, errCredentials},
		"wrong code":           {map[string]string{"code": "x"}, errCode},
		"missing code":         {map[string]string{"code": "-"}, errCode},
		"other redirect":       {map[string]string{"redirect_uri": callback + "/"}, errTokenMismatch},
		"refresh token":        {map[string]string{"grant_type": "refresh_token", "refresh_token": "ghr_x"}, errRefresh},
		"device flow":          {map[string]string{"grant_type": "urn:ietf:params:oauth:grant-type:device_code"}, errDevice},
		"other grant":          {map[string]string{"grant_type": "password"}, errGrantType},
		"wrong verifier":       {map[string]string{"code_verifier": strings.Repeat("x", 43)}, errVerifier},
		"missing verifier":     {map[string]string{"code_verifier": "-"}, errNoVerifier},
		"empty verifier":       {map[string]string{"code_verifier": ""}, errNoVerifier},
		"challenge as a proof": {map[string]string{"code_verifier": challenge()}, errVerifier},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{})
			status, got := r.exchange(r.code(nil), c.changes)
			want := c.want.answer()
			wanted := tokenReply{Error: c.want.code, Description: c.want.description, URI: c.want.uri}
			if status != want.status || got != wanted {
				t.Errorf("got %d and %+v, want %d and %v", status, got, want.status, want.fields)
			}
		})
	}
}

// TestToken_ErrorsHaveDocumentedText compares the errors with the text on the pages instead of the
// constants.
func TestToken_ErrorsHaveDocumentedText(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	got := r.send(http.MethodPost, pathToken, tokenForm("x", nil), formAsJSON)
	want := `{"error":"bad_verification_code","error_description":"The code passed is incorrect or expired.",` +
		`"error_uri":"https://docs.github.com/apps/managing-oauth-apps/` +
		`troubleshooting-oauth-app-access-token-request-errors/#bad-verification-code"}`
	if got.status != http.StatusOK || got.body != want {
		t.Errorf("got %d and %s, want 200 and %s", got.status, got.body, want)
	}
	form := r.send(http.MethodPost, pathToken, tokenForm("x", map[string]string{"client_secret": "y"}),
		map[string]string{"Content-Type": "application/x-www-form-urlencoded"})
	values, err := url.ParseQuery(form.body)
	if err != nil || form.status != http.StatusOK || values.Get("error") != "incorrect_client_credentials" ||
		values.Get("error_description") != "The client_id and/or client_secret passed are incorrect." {
		t.Errorf("got %d and %s (%v), want the error as a form", form.status, form.body, err)
	}
}

func TestToken_CodeIsUsedOnce(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	code := r.code(nil)
	r.exchange(code, nil)
	if _, got := r.exchange(code, nil); got.Error != "bad_verification_code" {
		t.Errorf("got %+v for the second use, want bad_verification_code", got)
	}
	failed := r.code(nil)
	r.exchange(failed, map[string]string{"code_verifier": "-"})
	if _, got := r.exchange(failed, nil); got.Error != "bad_verification_code" {
		t.Errorf("got %+v after a failed exchange, want bad_verification_code", got)
	}
}

func TestToken_CodeBelongsToApp(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.must(r.p.AddApp(App{ClientID: "other", Secret: "other-secret", Callbacks: []Callback{{URL: callback}}}))
	code := r.code(nil)
	_, got := r.exchange(code, map[string]string{"client_id": "other", "client_secret": "other-secret"})
	if got.Error != "bad_verification_code" {
		t.Errorf("got %+v for the code of another app, want bad_verification_code", got)
	}
	if _, got := r.exchange(code, nil); got.AccessToken == "" {
		t.Errorf("got %+v for the app's own code, want a token", got)
	}
}

func TestToken_VerifierWithoutChallengeIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	none := map[string]string{"code_challenge": "-", "code_challenge_method": "-"}
	if status, got := r.exchange(r.code(none), nil); got.Error != "invalid_grant" || status != http.StatusBadRequest {
		t.Errorf("got %d and %+v, want 400 and invalid_grant", status, got)
	}
	if _, got := r.exchange(r.code(none), map[string]string{"code_verifier": "-"}); got.AccessToken == "" {
		t.Errorf("got %+v without PKCE, want a token", got)
	}
}

func TestToken_ShortVerifierIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	sum := sha256.Sum256([]byte("short"))
	code := r.code(map[string]string{"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:])})
	if _, got := r.exchange(code, map[string]string{"code_verifier": "short"}); got.Error != "invalid_grant" {
		t.Errorf("got %+v, want invalid_grant", got)
	}
}

func TestToken_UnverifiedPrimaryEmailIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	user := octocat()
	user.Emails[0].Verified, user.Emails[1].Verified = false, true
	r.must(r.p.SetUser(user))
	if _, got := r.exchange(r.code(nil), nil); got.Error != "unverified_user_email" {
		t.Errorf("got %+v, want unverified_user_email", got)
	}
	user.IgnoreEmailCheck = true
	r.must(r.p.SetUser(user))
	if got := r.token("user:email"); got == "" {
		t.Error("got no token for a user without the check")
	}
}

func TestToken_MalformedInputIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	form := "application/x-www-form-urlencoded"
	for name, c := range map[string]struct{ kind, body string }{
		"no media type":      {"", tokenForm("x", nil)},
		"other media type":   {"text/plain", tokenForm("x", nil)},
		"repeated parameter": {form, tokenForm("x", nil) + "&code=y"},
		"number in JSON":     {"application/json", `{"client_id":1}`},
		"broken JSON":        {"application/json", `{"client_id":`},
		"array":              {"application/json", `[]`},
		"too long":           {form, "code=" + strings.Repeat("x", maxBody)},
	} {
		header := map[string]string{"Content-Type": c.kind, "Accept": "application/json"}
		got := r.send(http.MethodPost, pathToken, c.body, header)
		if answer := decodeAs[tokenReply](r, got); got.status != http.StatusBadRequest || answer.Error != "invalid_request" {
			t.Errorf("%s: got %d and %+v, want 400 and invalid_request", name, got.status, answer)
		}
	}
}

func TestToken_ReadsOnlyDocumentedPlaces(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	code := r.code(nil)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(clientID+":"+secret))
	header := map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json", "Authorization": basic,
	}
	body := tokenForm(code, map[string]string{"client_id": "-", "client_secret": "-"})
	got := decodeAs[tokenReply](r, r.send(http.MethodPost, pathToken, body, header))
	if got.Error != "incorrect_client_credentials" {
		t.Errorf("got %+v for Basic authentication, want incorrect_client_credentials", got)
	}
	got = decodeAs[tokenReply](r, r.send(http.MethodPost, pathToken+"?"+tokenForm(code, nil), "", formAsJSON))
	if got.Error != "incorrect_client_credentials" {
		t.Errorf("got %+v for parameters in the URL, want incorrect_client_credentials", got)
	}
}

func TestToken_TenPerHourAndOldestRevoked(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	first := r.token("user:email")
	r.advance(time.Minute)
	second := r.token("user:email")
	for range tokensPerHour - 2 {
		r.token("user:email")
	}
	code := r.code(map[string]string{"scope": "user:email"})
	got := r.send(http.MethodPost, pathToken, tokenForm(code, nil), formAsJSON)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "3540" {
		t.Errorf("got %d and Retry-After %q for the eleventh, want 429 and 3540", got.status, got.header.Get("Retry-After"))
	}
	if got := r.token("gist"); got == "" {
		t.Error("got no token for another scope")
	}
	if got := r.get(pathUser, first); got.status != http.StatusOK {
		t.Errorf("got status %d for the oldest token after a refusal, want 200", got.status)
	}
	r.advance(time.Hour)
	r.token("user:email")
	if got := r.get(pathUser, first); got.status != http.StatusUnauthorized {
		t.Errorf("got status %d for the oldest of eleven tokens, want 401", got.status)
	}
	if got := r.get(pathUser, second); got.status != http.StatusOK {
		t.Errorf("got status %d for the second of eleven tokens, want 200", got.status)
	}
	r.token("user:email")
	if got := r.get(pathUser, second); got.status != http.StatusUnauthorized {
		t.Errorf("got status %d for the second of twelve tokens, want 401", got.status)
	}
}

func TestToken_SuspendedAppIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	code := r.code(nil)
	r.must(r.p.AddApp(App{
		ClientID: clientID, Secret: secret, Callbacks: []Callback{{URL: callback}}, Suspended: true,
	}))
	if _, got := r.exchange(code, nil); got.Error != "incorrect_client_credentials" {
		t.Errorf("got %+v, want incorrect_client_credentials", got)
	}
}

func TestToken_UnlimitedOption(t *testing.T) {
	t.Parallel()
	r := start(t, Options{UnlimitedTokens: true})
	for range 2 * tokensPerHour {
		r.token("user:email")
	}
}
