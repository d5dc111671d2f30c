package service

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	publishingmedia "crier/publishing/media"
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
	// originalName is in characters.
	originalName = 255
)

// Upload stores a file and returns its row. It returns Invalid for a file that is of no known kind or incomplete, and
// TooLarge for one that is larger than its limit or than the rest of the organization's storage. The content is stored
// before the row, so that a crash leaves content that is never served.
func (s *Media) Upload(
	ctx context.Context, p tenancy.Principal, filename string, r io.Reader,
) (publishing.Medium, error) {
	const op = "publishing.Upload"
	left, err := s.storageLeft(ctx, p.Org)
	if err != nil {
		return publishing.Medium{}, err
	}
	limits := publishingmedia.Limits{Image: min(left, s.cfg.MaxImage), Video: min(left, s.cfg.MaxVideo)}
	kind, body, err := publishingmedia.Sniff(filename, r, limits)
	if err != nil {
		return publishing.Medium{}, uploadFault(op, err)
	}
	key, err := secret.Token("", keyLength)
	if err != nil {
		return publishing.Medium{}, internal(op, err)
	}
	m := publishing.Medium{
		ID: id.New[publishing.MediaTag](), Org: p.Org, Key: key, Name: publishingmedia.Name(filename),
		Ext: kind.Ext, ContentType: kind.ContentType, Width: kind.Width, Height: kind.Height,
		OriginalName: storableName(filename), CreatedAt: s.deps.Clock.Now(),
	}
	m.Size, err = s.deps.Blobs.Create(ctx, m.BlobKey(), body)
	if err != nil {
		err = uploadFault(op, err)
		if fault.Is(err, fault.TooLarge) && left < s.maxSize(m) {
			err = storageFull(op)
		}
		return publishing.Medium{}, err
	}
	if err := s.store.SaveMedium(ctx, m, s.cfg.MaxStorage); err != nil {
		deleted := s.deps.Blobs.Delete(context.WithoutCancel(ctx), m.BlobKey())
		return publishing.Medium{}, errors.Join(saveFault(op, err), deleted)
	}
	return m, nil
}

// storageLeft returns how many bytes the organization may still store. It returns TooLarge for 0.
func (s *Media) storageLeft(ctx context.Context, org tenancy.OrgID) (int64, error) {
	const op = "publishing.Upload"
	if s.cfg.MaxStorage == 0 {
		return math.MaxInt64, nil
	}
	stored, err := s.store.StoredBytes(ctx, org)
	if err != nil {
		return 0, internal(op, err)
	}
	if stored >= s.cfg.MaxStorage {
		return 0, storageFull(op)
	}
	return s.cfg.MaxStorage - stored, nil
}

func (s *Media) maxSize(m publishing.Medium) int64 {
	if m.Video() {
		return s.cfg.MaxVideo
	}
	return s.cfg.MaxImage
}

func saveFault(op string, err error) error {
	if errors.Is(err, publishingstore.ErrStorageFull) {
		return storageFull(op)
	}
	return internal(op, err)
}

func storageFull(op string) error {
	return fault.New(fault.TooLarge, op,
		"The storage of your organization is full. Ask whoever runs this instance for more.")
}

// storableName returns the beginning of the file name that the client sent, or "" when it cannot be stored.
func storableName(filename string) string {
	runes := []rune(filename)
	if len(runes) > originalName {
		runes = runes[:originalName]
	}
	if s := string(runes); publishing.Storable(s) {
		return s
	}
	return ""
}

// uploadFault returns an error of an upload as a fault: one that the reader wrapped as it is, an incomplete body as
// Invalid, and the others as Unavailable or Internal.
func uploadFault(op string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Kind != fault.Internal {
		return f
	}
	var cause *fault.Error
	for e := err; e != nil; e = errors.Unwrap(e) {
		if errors.As(e, &cause) && cause.Kind == fault.TooLarge {
			return cause
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Wrap(fault.Invalid, op, "The upload broke off before its end.", err)
	}
	return internal(op, err)
}

// Own returns a file of the organization by its id. Its public address is the base URL followed by its Path. It returns
// NotFound when the organization has no such file, and Unavailable while the database is away.
func (s *Media) Own(ctx context.Context, p tenancy.Principal, medium string) (publishing.Medium, error) {
	const op = "publishing.OwnFile"
	parsed, ok := id.Parse[publishing.MediaTag](medium)
	if !ok {
		return publishing.Medium{}, noFile(op)
	}
	known, err := s.store.Lookup(ctx, p.Org, nil, []publishing.MediaID{parsed}, []string{})
	if err != nil {
		return publishing.Medium{}, internal(op, err)
	}
	if len(known.Media) == 0 {
		return publishing.Medium{}, noFile(op)
	}
	return known.Media[0], nil
}

// Open returns a file by the two parts of its public path. It returns NotFound when there is none, and Unavailable when
// too many others are looked up at the same time.
func (s *Media) Open(ctx context.Context, key, file string) (publishing.Medium, blob.File, error) {
	const op = "publishing.OpenFile"
	if len(key) != keyLength || !publishing.Storable(key) {
		return publishing.Medium{}, nil, noFile(op)
	}
	m, err := s.lookup(ctx, op, key)
	if err != nil {
		return publishing.Medium{}, nil, err
	}
	if file != m.Name+"."+m.Ext {
		return publishing.Medium{}, nil, noFile(op)
	}
	f, err := s.deps.Blobs.Open(ctx, m.BlobKey())
	if err != nil {
		return publishing.Medium{}, nil, internal(op, err)
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
	m, err := s.store.MediumByKey(ctx, key)
	if pg.IsNoRows(err) {
		return publishing.Medium{}, noFile(op)
	}
	return m, internal(op, err)
}

func noFile(op string) error { return fault.New(fault.NotFound, op, "There is no such file.") }
