package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
)

const (
	partial    = ".partial"     // keys never start with a dot, so it cannot be one
	partialAge = 24 * time.Hour // older than any upload: left by a process that died
)

// Disk is a Store in one local folder, which several processes may share. No key can reach outside it.
type Disk struct{ root *os.Root }

// NewDisk makes the folder when it is missing and clears what dead processes left half written.
func NewDisk(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{root}
	if err := errors.Join(root.MkdirAll(partial, 0o700), d.sweep()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// Close ends the use of the folder.
func (d *Disk) Close() error { return d.root.Close() }

// Create implements Store.
func (d *Disk) Create(ctx context.Context, key string, r io.Reader) (size int64, err error) {
	const op = "blob.Create"
	if err := checkKey(op, key); err != nil {
		return 0, err
	}
	temp := path.Join(partial, rand.Text())
	defer func() {
		if err != nil {
			if e := d.root.Remove(temp); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}()
	if size, err = d.write(ctx, temp, r); err != nil {
		return 0, noRoom(op, err)
	}
	if err = d.root.MkdirAll(path.Dir(key), 0o700); err == nil {
		err = d.root.Rename(temp, key)
	}
	if err == nil {
		err = d.syncDirs(path.Dir(key))
	}
	if taken(err) {
		return 0, fault.Wrap(fault.Conflict, op, "The file key is taken by a folder or a file of that name.", err)
	}
	return size, noRoom(op, err)
}

// Check tells whether files can be stored now: it writes a small one and removes it. Its error is fault.Unavailable where Create's would be.
func (d *Disk) Check(ctx context.Context) error {
	const op = "blob.Check"
	probe := path.Join(partial, rand.Text())
	_, err := d.write(ctx, probe, strings.NewReader("probe"))
	if e := d.root.Remove(probe); !absent(e) {
		err = errors.Join(err, e)
	}
	return noRoom(op, err)
}

// Open implements Store.
func (d *Disk) Open(ctx context.Context, key string) (File, error) {
	const op = "blob.Open"
	if err := errors.Join(ctx.Err(), checkKey(op, key)); err != nil {
		return nil, err
	}
	f, err := d.root.Open(key)
	if absent(err) {
		return nil, fault.Wrap(fault.NotFound, op, "The file does not exist.", err)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.NotFound, op, "The file does not exist.")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &diskFile{f, info.Size()}, nil
}

// Delete implements Store.
func (d *Disk) Delete(ctx context.Context, key string) error {
	const op = "blob.Delete"
	if err := errors.Join(ctx.Err(), checkKey(op, key)); err != nil {
		return err
	}
	info, err := d.root.Lstat(key)
	if absent(err) || err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = d.root.Remove(key)
	}
	if absent(err) {
		return nil
	}
	return err
}

// write puts all of r into a new file and waits for the disk.
func (d *Disk) write(ctx context.Context, name string, r io.Reader) (int64, error) {
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(f, &ctxReader{ctx, r})
	if err == nil {
		err = f.Sync()
	}
	return size, errors.Join(err, f.Close())
}

// syncDirs makes the new name outlive a power cut, up to the root since folders may be new.
func (d *Disk) syncDirs(dir string) error {
	for {
		f, err := d.root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

func (d *Disk) sweep() error {
	left, err := fs.ReadDir(d.root.FS(), partial)
	if err != nil {
		return err
	}
	old := clock.System{}.Now().Add(-partialAge)
	for _, entry := range left {
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(old) {
			err = d.root.Remove(path.Join(partial, entry.Name()))
		}
		if err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func taken(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist)
}

// noRoom makes a disk that takes no files a passing failure: full, over its quota, read-only or closed to us.
func noRoom(op string, err error) error {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EPERM, syscall.EACCES} {
		if errors.Is(err, cause) {
			return fault.Wrap(fault.Unavailable, op, "The server has no room for files now; try again later.", err)
		}
	}
	return err
}

type diskFile struct {
	*os.File
	size int64
}

func (f *diskFile) Size() int64 { return f.size }

// ctxReader stops a long copy when the context is over.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
