package edgetest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/publishing"
	"crier/tenancy"
)

// Picture is the only stored file. Its URL path is Picture.Path and its content is World.File.
var Picture = publishing.Medium{
	ID: id.New[publishing.MediaTag](), Key: "abcdefghijklmnopqrstuv", Name: "cat", Ext: "png", ContentType: "image/png",
}

// media implements the port for uploaded files.
type media struct{ *World }

func (m media) Upload(_ context.Context, _ tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error) {
	m.UploadBegan.Store(true)
	n, err := io.Copy(io.Discard, r)
	if err != nil {
		return publishing.Medium{}, fault.Wrap(fault.Internal, "fake", "", err)
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Uploaded = n
	med := Picture
	med.OriginalName = filename
	return med, m.Err
}

func (m media) UploadTo(
	ctx context.Context, p tenancy.Principal, token, filename string, r io.Reader,
) (publishing.Medium, error) {
	if err := m.note("to " + token); err != nil {
		return publishing.Medium{}, err
	}
	return m.Upload(ctx, p, filename, r)
}

// UploadToken is the token of the only upload address. The API key has asked for it.
const UploadToken = "cru_token"

func (m media) CreateAddress(
	_ context.Context, p tenancy.Principal, credential []byte,
) (publishing.UploadAddress, error) {
	return publishing.UploadAddress{
		Org: p.Org, URL: "http://localhost:4000/upload/" + UploadToken, Via: p.Via, Credential: credential,
		ExpiresAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}, m.note("address")
}

func (m media) Address(_ context.Context, token string) (publishing.UploadAddress, error) {
	if token != UploadToken {
		return publishing.UploadAddress{}, fault.New(fault.NotFound, "fake", "There is no such upload address.")
	}
	return publishing.UploadAddress{Org: OrgID, Via: tenancy.ViaKey, Credential: secret.HashToken(APIKey)}, nil
}

func (m media) UploadFromURL(_ context.Context, _ tenancy.Principal, address string) (publishing.Medium, error) {
	return Picture, m.note("from " + address)
}

func (m media) List(_ context.Context, _ tenancy.Principal, q publishing.ListMedia) (publishing.MediaPage, error) {
	return publishing.MediaPage{Media: []publishing.Medium{Picture}, Pages: q.Page}, m.note("list " + q.Search)
}

func (m media) SetAlt(_ context.Context, _ tenancy.Principal, medium, alt string) (publishing.Medium, error) {
	changed := Picture
	changed.Alt = alt
	return changed, m.note("describe " + medium)
}

func (m media) Delete(_ context.Context, _ tenancy.Principal, medium string) error {
	return m.note("delete " + medium)
}

func (m media) Own(_ context.Context, _ tenancy.Principal, medium string) (publishing.Medium, error) {
	if medium != Picture.ID.String() {
		return publishing.Medium{}, fault.New(fault.NotFound, "fake", "There is no such file.")
	}
	return Picture, m.note("own " + medium)
}

func (m media) Original(_ context.Context, _ tenancy.Principal, medium string) (publishing.Medium, blob.File, error) {
	return Picture, file{Reader: bytes.NewReader(m.File), closed: new(atomic.Bool)}, m.note("original " + medium)
}

func (m media) OwnFile(address string) (key, file string, ours bool) {
	rest, ours := strings.CutPrefix(address, "http://localhost:4000/files/")
	key, file, _ = strings.Cut(rest, "/")
	return key, file, ours
}

func (m media) Open(_ context.Context, key, name string) (publishing.Medium, blob.File, error) {
	if key != Picture.Key || name != "cat.png" {
		return publishing.Medium{}, nil, fault.New(fault.NotFound, "fake", "There is no such file.")
	}
	return Picture, file{Reader: bytes.NewReader(m.File), closed: &m.FileClosed}, nil
}

func (m media) Stream(_ context.Context, address, _ string) (publishing.VideoStream, error) {
	body := io.NopCloser(bytes.NewReader(m.File))
	return publishing.VideoStream{Body: body, Size: int64(len(m.File))}, m.note("stream " + address)
}

// file is an open file. closed is set once it is closed.
type file struct {
	*bytes.Reader
	closed *atomic.Bool
}

func (f file) Close() error { f.closed.Store(true); return nil }
