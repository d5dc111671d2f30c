// Package media stores, serves and deletes organizations' files. It also cleans up stored files
// that no row refers to.
package media

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/text/unicode/norm"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/file/metadata"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
)

// Config configures Media. BaseURL and UploadTimeout are set by the program and are not read from
// the environment.
type Config struct {
	// BaseURL is this instance's public URL.
	BaseURL string
	// UploadTimeout is the maximum duration of an upload. CollectFiles uses it to tell orphaned
	// files from uploads in progress.
	UploadTimeout time.Duration

	MaxImage int64 `env:"MAX_IMAGE_BYTES, default=10485760" doc:"Maximum size of an uploaded image, in bytes."`
	MaxVideo int64 `env:"MAX_VIDEO_BYTES, default=1073741824" doc:"Maximum size of an uploaded video, in bytes."`
	// MaxStorage limits the total size of an organization's uploaded files, in bytes. 0 means no
	// limit.
	MaxStorage int64 `env:"ORG_MAX_STORAGE_BYTES, default=107374182400" doc:"Maximum size of an organization's files, in bytes; 0: no limit."`
}

const (
	maxFile    = 1 << 40 // bytes
	maxStorage = 1 << 50 // bytes
)

// Validate returns all configuration faults as a joined error. errors.As finds an env.Fault in the
// result.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("MAX_IMAGE_BYTES", c.MaxImage, 1, maxFile)
	faults.Number("MAX_VIDEO_BYTES", c.MaxVideo, 1, maxFile)
	faults.Number("ORG_MAX_STORAGE_BYTES", c.MaxStorage, 0, maxStorage)
	return faults.Err()
}

// Deps holds the dependencies of New. All are required.
type Deps struct {
	DB    *db.DB
	Blobs blob.Store
	// Fetch connects to public addresses only and follows no redirects.
	Fetch http.RoundTripper
	Clock clock.Clock
	Log   *slog.Logger
}

// Media stores, serves, lists and deletes files. It is safe for concurrent use.
type Media struct {
	cfg  Config
	deps Deps
	db   *db.DB
	// lookups limits concurrent lookups by file key or upload address. It has one element for each
	// lookup in progress.
	lookups chan struct{}
}

// New returns a Media. Anyone can look up files and upload addresses, so lookups could use up the
// pg.Gate role's connections. Lookups therefore leave one connection free for sign-ins, unless the
// role has only one, as in a pool of fewer than 16 connections.
func New(cfg Config, deps Deps) *Media {
	limit := max(1, deps.DB.Pool(pg.Gate).Config().MaxConns-1)
	return &Media{cfg: cfg, deps: deps, db: deps.DB, lookups: make(chan struct{}, limit)}
}

const (
	// lookupWait is how long a file lookup waits while too many other lookups are in progress.
	lookupWait = 2 * time.Second
	// keyLength is the length of a file key. Its base62 characters hold 142 bits.
	keyLength = 24
)

// Own returns one of the organization's files by id. The file's public URL is the base URL followed
// by the file's Path. Own returns NotFound if the organization has no such file, and Unavailable
// while the database is down.
func (s *Media) Own(ctx context.Context, p tenancy.Principal, medium string) (publishing.Medium, error) {
	const op = "publishing.OwnFile"
	parsed, ok := id.Parse[publishing.MediaTag](medium)
	if !ok {
		return publishing.Medium{}, noFile(op)
	}
	known, err := mediastore.FindMedia(ctx, s.db, p.Org, []publishing.MediaID{parsed}, []string{})
	if err != nil {
		return publishing.Medium{}, pg.Fault(op, err)
	}
	if len(known) == 0 {
		return publishing.Medium{}, noFile(op)
	}
	return known[0], nil
}

// Open opens the published form of a file. key and file are the two decoded parts of the file's
// public path. file can be in any Unicode normalization form. Open returns NotFound if there is no
// such file. It returns Unavailable if too many other lookups are in progress, or while the file
// store or the database is down.
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

// Original opens one of the organization's files as it was uploaded, with its metadata. It returns
// the same errors as Own, and Unavailable while the file store is down.
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

// lookup returns a file by key. If too many other lookups are in progress, it waits for at most
// lookupWait.
func (s *Media) lookup(ctx context.Context, op, key string) (publishing.Medium, error) {
	leave, err := s.enterLookup(ctx, op)
	if err != nil {
		return publishing.Medium{}, err
	}
	defer leave()
	m, err := mediastore.MediumByKey(ctx, s.db, key)
	if pg.IsNoRows(err) {
		return publishing.Medium{}, noFile(op)
	}
	return m, pg.Fault(op, err)
}

// enterLookup waits for at most lookupWait until one more lookup may begin. The caller must call
// leave once. If the wait is too long, enterLookup returns Unavailable.
func (s *Media) enterLookup(ctx context.Context, op string) (leave func(), err error) {
	wait, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	select {
	case s.lookups <- struct{}{}:
		return func() { <-s.lookups }, nil
	case <-wait.Done():
		const message = "Too many files are being requested at the same time; try again soon."
		f := fault.Wrap(fault.Unavailable, op, message, wait.Err())
		f.RetryAfter = lookupWait
		return nil, f
	}
}

// fileFault converts an error from the file store to a fault. The fault is Unavailable if the store
// is down or slow. Any other error becomes Internal, because every file that has a row must exist.
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
