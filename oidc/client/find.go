package client

import (
	"context"
	"crypto/subtle"
	"time"

	"crier/oidc"
	clientstore "crier/oidc/client/store"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
)

// documentLife is how long a metadata document is used before it is fetched again.
const documentLife = 24 * time.Hour

// maxClientID is the maximum length of a client id, in bytes.
const maxClientID = 2048

// Find returns the client with the given id, which comes from a visitor's request. If the id is the
// URL of a metadata document that was not fetched within the last day, Find fetches and stores the
// document.
//
// Find returns an oidc.Error with InvalidClient if there is no such client, or if its document
// cannot be fetched or used. It returns RateLimited if too many documents have been fetched for the
// visitor, from the host or in total. It returns Unavailable if the database cannot be reached.
func (s *Clients) Find(ctx context.Context, clientID string, from tenancy.Source) (oidc.Client, error) {
	return s.find(ctx, clientID, from, s.isFresh)
}

// Refetch is like Find, but fetches a metadata document even if it was fetched within the last day.
func (s *Clients) Refetch(ctx context.Context, clientID string, from tenancy.Source) (oidc.Client, error) {
	return s.find(ctx, clientID, from, func(clientstore.Client) bool { return false })
}

// find returns a client. It fetches the client's document if none is stored, or if usable returns
// false for the stored client.
func (s *Clients) find(
	ctx context.Context, clientID string, from tenancy.Source, usable func(clientstore.Client) bool,
) (oidc.Client, error) {
	c, found, err := s.stored(ctx, clientID)
	switch {
	case err != nil:
		return oidc.Client{}, err
	case found && (!oidc.IsDocumentURL(clientID) || usable(c)):
		return c.Client, nil
	case !oidc.IsDocumentURL(clientID):
		return oidc.Client{}, unknownClient()
	}
	c, err = s.refetch(ctx, clientID, from, found)
	return c.Client, err
}

// Authenticate returns the client with the given id after checking its secret. For a public client,
// sent must be "". Authenticate returns an oidc.Error with InvalidClient if the secret is wrong or
// no such client is stored. It returns Unavailable if the database cannot be reached.
//
// Authenticate fetches no document. A client's document was already fetched when the client
// requested access. This way, a client can refresh its tokens even while its document cannot be
// fetched.
func (s *Clients) Authenticate(ctx context.Context, clientID, sent string) (oidc.Client, error) {
	c, found, err := s.stored(ctx, clientID)
	switch {
	case err != nil:
		return oidc.Client{}, err
	case !found:
		return oidc.Client{}, unknownClient()
	case c.Public() && sent != "":
		return oidc.Client{}, oidc.Fail(oidc.InvalidClient, "This client has no secret.")
	case !c.Public() && subtle.ConstantTimeCompare(secret.HashToken(sent), c.Secret) != 1:
		return oidc.Client{}, oidc.Fail(oidc.InvalidClient, "The client secret is wrong.")
	}
	return c.Client, nil
}

// stored returns the stored client with the given id. found is false if there is none.
func (s *Clients) stored(ctx context.Context, clientID string) (c clientstore.Client, found bool, err error) {
	if len(clientID) > maxClientID || !oidc.IsDocumentURL(clientID) && !isIssued(clientID) {
		return c, false, nil
	}
	c, err = clientstore.Find(ctx, s.db, clientID)
	switch {
	case pg.IsNoRows(err):
		return c, false, nil
	case err != nil:
		return c, false, db.Fault("oidc.FindClient", err)
	}
	return c, true, nil
}

func unknownClient() error {
	return oidc.Fail(oidc.InvalidClient, "There is no such client. It may have to register again.")
}

// isFresh reports whether a client's document was fetched recently enough to be used.
func (s *Clients) isFresh(c clientstore.Client) bool {
	if c.FetchedAt == nil {
		return false
	}
	age := s.clock.Now().Sub(*c.FetchedAt)
	return age > -documentLife && age < documentLife
}

// isIssued reports whether a client id has the format of the client ids that the server issues.
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
