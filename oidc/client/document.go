package client

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"crier/oidc"
	clientstore "crier/oidc/client/store"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/tenancy"
	"crier/tenancy/db"
)

const (
	// fetchTimeout limits how long fetching a document may take, including its body.
	fetchTimeout = 5 * time.Second
	// maxVisitorFetches limits how many documents this process fetches per minute for one visitor's
	// network. Anyone can make the service fetch documents that do not exist. To keep them from
	// blocking clients that are known, maxHostFetches and maxFetches limit only how many documents
	// are fetched for the first time, per minute from one host and in total.
	maxVisitorFetches = 30
	maxHostFetches    = 600
	maxFetches        = 3000
)

// refetch fetches a client's document for a visitor and stores it. known means that it has been
// stored before. Concurrent callers share one fetch.
func (s *Clients) refetch(
	ctx context.Context, address string, from tenancy.Source, known bool,
) (clientstore.Client, error) {
	const op = "oidc.FetchClient"
	if err := s.countFetch(op, "for "+from.Site, maxVisitorFetches); err != nil {
		return clientstore.Client{}, err
	}
	if !known {
		if err := s.countNew(op, address); err != nil {
			return clientstore.Client{}, err
		}
	}
	done := s.fetching.DoChan(address, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*fetchTimeout)
		defer cancel()
		return s.fetchAndSave(ctx, op, address)
	})
	select {
	case got := <-done:
		c, _ := got.Val.(clientstore.Client)
		return c, got.Err
	case <-ctx.Done():
		return clientstore.Client{}, fault.Wrap(fault.Unavailable, op, "", ctx.Err())
	}
}

func (s *Clients) fetchAndSave(ctx context.Context, op, address string) (c clientstore.Client, err error) {
	m, err := s.fetch(ctx, address)
	if err != nil {
		// The cause could reveal names and addresses in the private network.
		return c, oidc.Fail(oidc.InvalidClient, "The client's metadata document cannot be fetched. It must be JSON "+
			"of at most 64 KiB at a public https URL that responds with status 200 within 5 seconds.")
	}
	described, err := m.Documented(address)
	if err != nil {
		return c, err
	}
	described.ID = id.New[tenancy.AgentTag]()
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		c, err = clientstore.SaveDocument(ctx, tx, described, s.clock.Now())
		return err
	})
	return c, err
}

// countNew returns RateLimited if too many documents have been fetched for the first time, from the
// document's host or in total.
func (s *Clients) countNew(op, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	if err := s.countFetch(op, "from "+strings.ToLower(u.Hostname()), maxHostFetches); err != nil {
		return err
	}
	return s.countFetch(op, "", maxFetches)
}

// countFetch returns RateLimited if the limit of fetches per minute has been reached for a key.
func (s *Clients) countFetch(op, key string, limit int) error {
	verdict := s.fetches.Take(key, s.clock.Now(), limit)
	if verdict.Allowed {
		return nil
	}
	return &fault.Error{
		Kind: fault.RateLimited, Op: op,
		Message:    "Too many client metadata documents are being fetched; try again soon.",
		RetryAfter: verdict.RetryAfter,
	}
}

// fetch returns the document at a URL. It does not follow redirects.
func (s *Clients) fetch(ctx context.Context, address string) (m oidc.Metadata, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return m, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.http.RoundTrip(req)
	if err != nil {
		return m, err
	}
	body, err := outbound.ReadAll(resp, oidc.MaxDocument)
	if err != nil {
		return m, err
	}
	if resp.StatusCode != http.StatusOK {
		return m, fmt.Errorf("status %d", resp.StatusCode)
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return m, fmt.Errorf("content type %q", resp.Header.Get("Content-Type"))
	}
	return m, json.Unmarshal(body, &m)
}
