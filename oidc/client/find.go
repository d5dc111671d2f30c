package client

import (
	"context"
	"crypto/subtle"
	"time"

	"crier/oidc"
	clientstore "crier/oidc/client/store"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy/db"
)

// documentLife is how long a metadata document is used before it is fetched again.
const documentLife = 24 * time.Hour

// maxClientID is the maximum length of a client id, in bytes.
const maxClientID = 2048

// Find returns the client with the given id. If the id is the URL of a metadata document that was
// not fetched within the last day, Find fetches the document and stores it.
//
// Find returns an oidc.Error with InvalidClient if there is no such client or its document cannot
// be fetched or used, RateLimited if too many documents have been fetched from its host or in
// total, and Unavailable if the database cannot be reached.
func (s *Clients) Find(ctx context.Context, clientID string) (oidc.Client, error) {
	c, err := s.find(ctx, clientID)
	return c.Client, err
}

// Authenticate is like Find, but also checks the client's secret. For a public client, sent must be
// "". Authenticate returns an oidc.Error with InvalidClient if the secret is wrong.
func (s *Clients) Authenticate(ctx context.Context, clientID, sent string) (oidc.Client, error) {
	c, err := s.find(ctx, clientID)
	if err != nil {
		return oidc.Client{}, err
	}
	switch {
	case c.Public() && sent != "":
		return oidc.Client{}, oidc.Fail(oidc.InvalidClient, "This client has no secret.")
	case !c.Public() && subtle.ConstantTimeCompare(secret.HashToken(sent), c.Secret) != 1:
		return oidc.Client{}, oidc.Fail(oidc.InvalidClient, "The client secret is wrong.")
	}
	return c.Client, nil
}

func (s *Clients) find(ctx context.Context, clientID string) (clientstore.Client, error) {
	const op = "oidc.FindClient"
	unknown := oidc.Fail(oidc.InvalidClient, "There is no such client. It may have to register again.")
	if clientID == "" || len(clientID) > maxClientID {
		return clientstore.Client{}, unknown
	}
	document := oidc.IsDocumentURL(clientID)
	if !document && !isIssued(clientID) {
		return clientstore.Client{}, unknown
	}
	c, err := clientstore.Find(ctx, s.db, clientID)
	switch {
	case pg.IsNoRows(err) && !document:
		return clientstore.Client{}, unknown
	case err != nil && !pg.IsNoRows(err):
		return clientstore.Client{}, db.Fault(op, err)
	case !document || err == nil && s.isFresh(c):
		return c, nil
	}
	return s.refetch(ctx, op, clientID)
}

// isFresh reports whether a client's document was fetched recently enough to be used.
func (s *Clients) isFresh(c clientstore.Client) bool {
	if c.FetchedAt == nil {
		return false
	}
	age := s.clock.Now().Sub(*c.FetchedAt)
	return age > -documentLife && age < documentLife
}

// isIssued reports whether a client id has the form of the ids that the server issues.
func isIssued(clientID string) bool {
	if len(clientID) != len(oidc.ClientPrefix)+tokenLength || clientID[:len(oidc.ClientPrefix)] != oidc.ClientPrefix {
		return false
	}
	for _, r := range clientID[len(oidc.ClientPrefix):] {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return true
}
