package service

import (
	"context"
	"errors"
	"time"

	"golang.org/x/text/unicode/norm"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/media/metadata"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// Media are the use cases of files. It is safe for concurrent use.
type Media struct {
	core
	// lookups has an element for each look-up of a file by its key that is in progress.
	lookups chan struct{}
}

// NewMedia returns the use cases of files. Files are served without authentication. Their look-ups by key therefore
// leave one connection of pg.Gate to log-ins, if it has more than one: in pools of 16 connections or more.
func NewMedia(cfg Config, deps Deps) *Media {
	limit := max(1, deps.DB.Pool(pg.Gate).Config().MaxConns-1)
	return &Media{core: newCore(cfg, deps), lookups: make(chan struct{}, limit)}
}

const (
	// lookupWait is how long a look-up of a file waits for others.
	lookupWait = 2 * time.Second
	// keyLength is in base62 characters, which hold 142 bits.
	keyLength = 24
)

// Own returns a file of the organization by its id. Its public address is the base URL followed by its Path. It returns
// NotFound when the organization has no such file, and Unavailable while the database is away.
func (s *Media) Own(ctx context.Context, p tenancy.Principal, medium string) (publishing.Medium, error) {
	const op = "publishing.OwnFile"
	parsed, ok := id.Parse[publishing.MediaTag](medium)
	if !ok {
		return publishing.Medium{}, noFile(op)
	}
	known, err := publishingstore.Lookup(ctx, s.store, p.Org, nil, []publishing.MediaID{parsed}, []string{})
	if err != nil {
		return publishing.Medium{}, internal(op, err)
	}
	if len(known.Media) == 0 {
		return publishing.Medium{}, noFile(op)
	}
	return known.Media[0], nil
}

// Open returns a file as it is published, by the two decoded parts of its public path; its name may
// be in any Unicode normalization form. It returns NotFound if there is no such file, and
// Unavailable if too many others are being looked up, or while the files or the database are away.
func (s *Media) Open(ctx context.Context, key, file string) (publishing.Medium, blob.File, error) {
	const op = "publishing.OpenFile"
	if len(key) != keyLength || !publishing.Storable(key) {
		return publishing.Medium{}, nil, noFile(op)
	}
	m, err := s.lookup(ctx, op, key)
	if err != nil {
		return publishing.Medium{}, nil, err
	}
	if norm.NFC.String(file) != m.FileName() {
		return publishing.Medium{}, nil, noFile(op)
	}
	f, err := metadata.Open(ctx, s.deps.Blobs, m.BlobKey(), m.Edits)
	if err != nil {
		return publishing.Medium{}, nil, fileFault(op, err)
	}
	return m, f, nil
}

// Original returns a file of the organization as it was uploaded, with its metadata. Errors are
// those of Own.
func (s *Media) Original(
	ctx context.Context, p tenancy.Principal, medium string,
) (publishing.Medium, blob.File, error) {
	m, err := s.Own(ctx, p, medium)
	if err != nil {
		return publishing.Medium{}, nil, err
	}
	f, err := s.deps.Blobs.Open(ctx, m.BlobKey())
	if err != nil {
		return publishing.Medium{}, nil, fileFault("publishing.OriginalFile", err)
	}
	return m, f, nil
}

// lookup returns a file by its key. It waits for other look-ups, lookupWait at most.
func (s *Media) lookup(ctx context.Context, op, key string) (publishing.Medium, error) {
	wait, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
	case <-wait.Done():
		const message = "Too many files are asked for at the same time; try again soon."
		f := fault.Wrap(fault.Unavailable, op, message, wait.Err())
		f.RetryAfter = lookupWait
		return publishing.Medium{}, f
	}
	m, err := publishingstore.MediumByKey(ctx, s.store, key)
	if pg.IsNoRows(err) {
		return publishing.Medium{}, noFile(op)
	}
	return m, internal(op, err)
}

// fileFault returns an error of the file store as Unavailable if the store is away or slow, and
// otherwise as Internal, because the file has a row and must exist.
func fileFault(op string, err error) error {
	switch {
	case fault.Is(err, fault.Unavailable):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Unavailable, op, "The files cannot be reached in time; try again soon.", err)
	}
	return fault.Wrap(fault.Internal, op, "", err)
}

func noFile(op string) error { return fault.New(fault.NotFound, op, "There is no such file.") }
