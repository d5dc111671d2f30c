package service

import (
	"context"
	"errors"
	"io"
	"math"

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

// Media carries out what is asked about files.
type Media struct{ core }

// NewMedia makes the service.
func NewMedia(cfg Config, deps Deps) *Media { return &Media{newCore(cfg, deps)} }

const (
	keyLength    = 24 // base62 characters: 142 bits
	originalName = 255
)

// Upload stores a file. Bytes go to rest first and the row follows: a file without a row is never served.
func (s *Media) Upload(ctx context.Context, p tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error) {
	const op = "publishing.Upload"
	left, err := s.storageLeft(ctx, p.Org)
	if err != nil {
		return publishing.Medium{}, err
	}
	kind, body, err := publishingmedia.Sniff(filename, r, publishingmedia.Limits{Image: min(left, s.cfg.MaxImage), Video: min(left, s.cfg.MaxVideo)})
	if err != nil {
		return publishing.Medium{}, uploadFault(op, err)
	}
	key, err := secret.Token("", keyLength)
	if err != nil {
		return publishing.Medium{}, internal(op, err)
	}
	m := publishing.Medium{ID: id.New[publishing.MediaTag](), Org: p.Org, Key: key, Name: publishingmedia.Name(filename), Ext: kind.Ext, ContentType: kind.ContentType,
		Width: kind.Width, Height: kind.Height, OriginalName: original(filename), CreatedAt: s.deps.Clock.Now()}
	if m.Size, err = s.deps.Blobs.Create(ctx, m.BlobKey(), body); err != nil {
		err = uploadFault(op, err)
		if fault.Is(err, fault.TooLarge) && left < s.most(m) {
			err = storageFull(op)
		}
		return publishing.Medium{}, err
	}
	if err := s.store.SaveMedium(ctx, m, s.cfg.MaxStored); err != nil {
		return publishing.Medium{}, errors.Join(saveFault(op, err), s.deps.Blobs.Delete(context.WithoutCancel(ctx), m.BlobKey()))
	}
	return m, nil
}

// storageLeft returns how many bytes the organization may still store, and TooLarge for none.
func (s *Media) storageLeft(ctx context.Context, org tenancy.OrgID) (int64, error) {
	const op = "publishing.Upload"
	if s.cfg.MaxStored == 0 {
		return math.MaxInt64, nil
	}
	stored, err := s.store.Stored(ctx, org)
	if err == nil && stored >= s.cfg.MaxStored {
		return 0, storageFull(op)
	}
	return s.cfg.MaxStored - stored, internal(op, err)
}

// most is how many bytes a medium of this kind may have.
func (s *Media) most(m publishing.Medium) int64 {
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
	return fault.New(fault.TooLarge, op, "The storage of your organization is full. Ask whoever runs this instance for more.")
}

// original keeps what the client called the file, as far as it can be stored.
func original(filename string) string {
	runes := []rune(filename)
	if len(runes) > originalName {
		runes = runes[:originalName]
	}
	if s := string(runes); publishing.Storable(s) {
		return s
	}
	return ""
}

// uploadFault passes a fault on, wherever it was wrapped on its way through the reader, and makes a broken-off body the client's.
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

// Open finds a file by the two parts of its public path.
func (s *Media) Open(ctx context.Context, key, file string) (publishing.Medium, blob.File, error) {
	const op = "publishing.OpenFile"
	none := fault.New(fault.NotFound, op, "There is no such file.")
	if len(key) != keyLength || !publishing.Storable(key) {
		return publishing.Medium{}, nil, none
	}
	m, err := s.store.MediumByKey(ctx, key)
	if pg.IsNoRows(err) || err == nil && file != m.Name+"."+m.Ext {
		return publishing.Medium{}, nil, none
	}
	if err != nil {
		return publishing.Medium{}, nil, internal(op, err)
	}
	f, err := s.deps.Blobs.Open(ctx, m.BlobKey())
	if err != nil {
		return publishing.Medium{}, nil, internal(op, err)
	}
	return m, f, nil
}
