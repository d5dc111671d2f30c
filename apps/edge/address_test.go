package edge_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/apps/edge/oauth"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/edgetest"
)

const uploadPath = "/upload/" + edgetest.UploadToken

func TestUploadTo_TakesFormsAndBodies(t *testing.T) {
	t.Parallel()
	form := formHead + "content\r\n--b--\r\n"
	for name, c := range map[string]struct {
		method, kind, body string
		name               string // the file's, in the response
	}{
		"a form":                     {method: "POST", kind: "multipart/form-data; boundary=b", body: form, name: `"originalName":"a.png"`},
		"a form with PUT":            {method: "PUT", kind: "multipart/form-data; boundary=b", body: form, name: `"originalName":"a.png"`},
		"curl -T":                    {method: "PUT", body: "content"},
		"curl --data-binary":         {method: "POST", kind: "application/x-www-form-urlencoded", body: "content"},
		"a body with a claimed type": {method: "POST", kind: "text/html", body: "content"},
		"a type that is no type":     {method: "POST", kind: ";;;", body: "content"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, nil)
			// Forwarding headers and credentials of others are ignored.
			a := s.Call(t, c.method, uploadPath, c.body, "Content-Type", c.kind, "Authorization", "nonsense",
				"Cookie", "auth="+edgetest.UserSession, "X-Forwarded-For", "198.51.100.7", "X-Forwarded-Host", "evil.example")
			edgetest.Want(t, a, 201, `"id":"`+edgetest.Picture.ID.String()+`"`, `"path":"http://crier.test/files/`, c.name)
			if s.Uploaded != 7 {
				t.Errorf("%d bytes were uploaded, want 7", s.Uploaded)
			}
			if got := a.Header.Get("X-RateLimit-Limit"); got == "" {
				t.Error("the upload is not counted toward the organization's limit")
			}
		})
	}
}

// A link previewer requests the address without sending a file.
func TestUploadTo_OtherMethodsDoNothing(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, method := range []string{"GET", "HEAD", "DELETE", "PATCH", "BREW"} {
		edgetest.Want(t, s.Call(t, method, uploadPath, ""), 405)
	}
	a := s.Call(t, "OPTIONS", uploadPath, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "PUT")
	if got := a.Header.Get("Access-Control-Allow-Origin"); a.Status >= 500 || got != "" {
		t.Errorf("the preflight of another site: got %d and the origin %q, want none", a.Status, got)
	}
	if len(s.IDs) != 0 || s.Uploaded != 0 {
		t.Errorf("got %v and %d bytes, want nothing", s.IDs, s.Uploaded)
	}
}

func TestUploadTo_TokenIsNotLogged(t *testing.T) {
	t.Parallel()
	const guess = "cru_0123456789012345678901234567890123456789012"
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.Call(t, "PUT", "/upload/"+guess, "content"), 404, "There is no such upload address.")
	edgetest.Want(t, s.Call(t, "PUT", "/upload/%00%ff", "content"), 404)
	edgetest.Want(t, s.Call(t, "GET", uploadPath, ""), 405)
	edgetest.Want(t, s.Call(t, "PUT", uploadPath, "content"), 201)
	s.Fail(fault.New(fault.Conflict, "fake", "This upload address has been used."))
	edgetest.Want(t, s.Call(t, "POST", uploadPath, "content"), 409, "has been used")
	s.Revoked.Store(true)
	edgetest.Want(t, s.Call(t, "PUT", uploadPath, "content"), 401, "requested this upload address no longer works")
	for _, token := range []string{guess, edgetest.UploadToken} {
		if strings.Contains(s.Log.String(), token) {
			t.Errorf("the log contains %s", token)
		}
	}
	if log := s.Log.String(); !strings.Contains(log, "/upload/{token}") {
		t.Errorf("the log does not contain the route: %s", log)
	}
}

func TestUploadTo_BodyIsLimited(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"UPLOAD_BODY_LIMIT": "1000"})
	edgetest.Want(t, s.Call(t, "PUT", uploadPath, strings.Repeat("x", 1000)), 201)
	edgetest.Want(t, s.Call(t, "PUT", uploadPath, strings.Repeat("x", 1001)), 413)
	out := s.Raw(t, "PUT "+uploadPath+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"+edgetest.Chunked(strings.Repeat("x", 1001)))
	if !strings.Contains(out, " 413 ") {
		t.Errorf("in chunks: got %q, want 413", out)
	}
	s.RateLimited.Store(true)
	edgetest.Want(t, s.Call(t, "PUT", uploadPath, "content"), 429)
}

// ofAgent makes an upload address that an agent has asked for, and records whether the upload is
// narrowed to the agent's channels.
type ofAgent struct {
	edge.Media
	token    string
	narrowed *bool
}

func (m ofAgent) Address(context.Context, string) (publishing.UploadAddress, error) {
	return publishing.UploadAddress{Org: edgetest.OrgID, Via: tenancy.ViaAgent, Credential: secret.HashToken(m.token)}, nil
}

func (m ofAgent) UploadTo(
	ctx context.Context, p tenancy.Principal, _, _ string, r io.Reader,
) (publishing.Medium, error) {
	*m.narrowed = pg.IsNarrowed(ctx) && p.Via == tenancy.ViaAgent
	_, err := io.Copy(io.Discard, r)
	return edgetest.Picture, err
}

// limited gives every agent limits.
type limited struct{ oauth.Grants }

func (l limited) AuthenticateHash(ctx context.Context, hash []byte) (tenancy.Principal, error) {
	p, err := l.Grants.AuthenticateHash(ctx, hash)
	p.Agent.Limits = &tenancy.AgentLimits{Channels: []string{"0193b2c4-7d10-7a31-9c55-2f0e6b1a4d01"}}
	return p, err
}

func TestUploadTo_ActsAsTheAgent(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]int{
		edgetest.WriterToken: 201, edgetest.ReaderToken: 403, edgetest.SuspendedToken: 403, "cra_revoked": 401,
	} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			narrowed := false
			s, _ := edgetest.NewOAuth(t, nil, func(d *edge.Deps) {
				d.Media = ofAgent{Media: d.Media, token: token, narrowed: &narrowed}
				d.OAuth.Grants = limited{d.OAuth.Grants}
			})
			edgetest.Want(t, s.Call(t, "PUT", uploadPath, "content"), want)
			if narrowed != (want == 201) {
				t.Errorf("the upload is narrowed is %t", narrowed)
			}
		})
	}
}
