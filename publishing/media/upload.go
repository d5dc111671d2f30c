package media

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/file"
	"crier/publishing/file/metadata"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
)

// originalName is the maximum length of a file's original name, in characters.
const originalName = 255

// Upload stores a file and returns its row. If the organization already has a file with the same
// bytes, the two files share the stored bytes but nothing else. Upload returns Invalid if the file
// is incomplete or has an unknown type. It returns TooLarge if the file exceeds the limit for its
// type or the organization's remaining storage.
//
// The bytes are stored before the row. After a crash in between, the bytes are never served, and
// CollectFiles deletes them.
func (s *Media) Upload(
	ctx context.Context, p tenancy.Principal, filename string, r io.Reader,
) (publishing.Medium, error) {
	return s.save(ctx, "publishing.Upload", p, upload{name: filename, claims: filename, r: r})
}

// upload is a file to be stored.
type upload struct {
	name string
	// claims is a file name whose extension must match the content, or "" to skip this check.
	claims string
	r      io.Reader
	// address is the hash of the upload address that the file was sent to, or nil. The address
	// must not have taken a file yet.
	address []byte
}

func (s *Media) save(ctx context.Context, op string, p tenancy.Principal, u upload) (publishing.Medium, error) {
	left, err := s.storageLeft(ctx, op, p.Org)
	if err != nil {
		return publishing.Medium{}, err
	}
	limits := file.Limits{Image: min(left, s.cfg.MaxImage), Video: min(left, s.cfg.MaxVideo)}
	kind, body, err := file.Sniff(u.claims, u.r, limits)
	if err != nil {
		return publishing.Medium{}, uploadFault(op, err)
	}
	key, err := secret.Token("", keyLength)
	if err != nil {
		return publishing.Medium{}, pg.Fault(op, err)
	}
	m := publishing.Medium{
		ID: id.New[publishing.MediaTag](), Org: p.Org, Key: key, Blob: key, Name: file.Name(u.name),
		Ext: kind.Ext, ContentType: kind.ContentType, Width: kind.Width, Height: kind.Height,
		OriginalName: storableName(u.name), CreatedAt: s.deps.Clock.Now(),
	}
	hash, video := sha256.New(), &file.VideoProbe{}
	scanner, err := metadata.NewScanner(kind.Ext)
	if err != nil {
		return publishing.Medium{}, pg.Fault(op, err)
	}
	seen := io.MultiWriter(hash, scanner)
	if kind.Video {
		seen = io.MultiWriter(hash, scanner, video)
	}
	m.Stored, err = s.deps.Blobs.Create(ctx, m.BlobKey(), io.TeeReader(body, seen))
	if err != nil {
		err = uploadFault(op, err)
		if fault.Is(err, fault.TooLarge) && left < s.maxSize(m) {
			err = storageFull(op)
		}
		return publishing.Medium{}, err
	}
	if kind.Video {
		if err := video.Incomplete(u.name); err != nil {
			return publishing.Medium{}, errors.Join(err, s.deleteBlob(ctx, m))
		}
		m.Width, m.Height = video.Size()
		m.DurationMS = video.Length().Milliseconds()
	}
	edits, err := scanner.Edits()
	if err != nil {
		return publishing.Medium{}, errors.Join(err, s.deleteBlob(ctx, m))
	}
	m.Edits, m.Size = edits.Bytes(), m.Stored+edits.Grows()
	stored, err := s.saveRow(ctx, p, m, hash.Sum(nil), u.address)
	if err != nil {
		return publishing.Medium{}, s.unsaved(ctx, op, m, err)
	}
	if stored.Blob == m.Blob {
		return stored, nil
	}
	if err := s.deleteBlob(ctx, m); err != nil {
		s.deps.Log.WarnContext(ctx, "cannot delete the second copy of a file yet; retrying", "org", p.Org, "error", err)
	}
	return stored, nil
}

// saveRow stores the row of a file. For an agent or an upload address, it confirms the principal in
// the transaction, which also uses up the address. It writes no audit entry, because nothing uses
// the file yet.
func (s *Media) saveRow(
	ctx context.Context, p tenancy.Principal, m publishing.Medium, hash, address []byte,
) (stored publishing.Medium, err error) {
	if p.Via != tenancy.ViaAgent && address == nil {
		return mediastore.SaveMedium(ctx, s.db, m, hash, s.cfg.MaxStorage)
	}
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		if address != nil {
			if err := useAddress(ctx, tx, address, m.ID); err != nil {
				return err
			}
		}
		stored, err = mediastore.AddMedium(ctx, tx, m, hash, s.cfg.MaxStorage)
		return err
	})
	return stored, err
}

// unsaved returns the fault for a file whose row may not have been inserted. If no row can refer to
// the file's bytes, unsaved deletes them. Otherwise, it keeps them, because the row may exist and
// other files may already share the bytes. If no row refers to them after all, CollectFiles deletes
// them.
func (s *Media) unsaved(ctx context.Context, op string, m publishing.Medium, err error) error {
	failure := db.Fault(op, err)
	full := errors.Is(err, mediastore.ErrStorageFull)
	if full {
		failure = storageFull(op)
	}
	if full || fault.KindOf(err) != fault.Internal || pg.IsRolledBack(err) || pg.IsOrgBusy(err) {
		return errors.Join(failure, s.deleteBlob(ctx, m))
	}
	return failure
}

// deleteBlob deletes a file's bytes, even if ctx has ended. If the deletion fails, CollectFiles
// deletes the bytes later.
func (s *Media) deleteBlob(ctx context.Context, m publishing.Medium) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	return s.deps.Blobs.Delete(ctx, m.BlobKey())
}

// storageLeft returns how many more bytes the organization can store. It returns TooLarge if the
// storage is full.
func (s *Media) storageLeft(ctx context.Context, op string, org tenancy.OrgID) (int64, error) {
	if s.cfg.MaxStorage == 0 {
		return math.MaxInt64, nil
	}
	stored, err := mediastore.StoredBytes(ctx, s.db, org)
	if err != nil {
		return 0, pg.Fault(op, err)
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

func storageFull(op string) error {
	return fault.New(fault.TooLarge, op,
		"Your organization's storage is full. Ask whoever runs this instance for more.")
}

// storableName returns the client's file name, truncated to originalName characters, or "" if the
// name cannot be stored.
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

// uploadFault converts an upload error to a fault. It returns a fault from the reader unchanged. It
// returns Invalid for an incomplete body, and Unavailable or Internal for any other error.
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
		return fault.Wrap(fault.Invalid, op, "The upload was interrupted before it was complete.", err)
	}
	return fileFault(op, err)
}
