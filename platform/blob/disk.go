package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
)

const (
	// partial is the folder for files that are being written. It never collides with a key, because
	// no key starts with a dot.
	partial = ".partial"
	// partialAge is longer than any upload waits for its next bytes. A file that has not been
	// written to for that long was left behind by a process that died.
	partialAge = 24 * time.Hour
)

// Disk is a Store in a local folder that several processes may share. No key can reach outside the
// folder.
type Disk struct{ root *os.Root }

// NewDisk returns a Disk in the folder dir. It creates the folder if it is missing, and deletes
// incomplete files that are older than a day. NewDisk returns the file system's error if the folder
// cannot be created, opened or searched. The caller must close the Disk.
func NewDisk(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{root: root}
	if err := errors.Join(root.MkdirAll(partial, 0o700), d.sweep(clock.System{}.Now().Add(-partialAge))); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// Close releases the folder and returns any error from the file system. Open files stay readable.
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
	size, err = d.write(ctx, temp, r)
	if err != nil {
		return 0, asUnavailable(op, err)
	}
	err = d.publish(temp, key)
	if taken(err) {
		return 0, fault.Wrap(fault.Conflict, op, "A file or folder with this key already exists.", err)
	}
	return size, asUnavailable(op, err)
}

// publish renames a complete file to its key and ensures that the key survives a power failure.
func (d *Disk) publish(temp, key string) error {
	if err := d.root.MkdirAll(path.Dir(key), 0o700); err != nil {
		return err
	}
	if err := d.root.Rename(temp, key); err != nil {
		return err
	}
	return d.syncDirs(path.Dir(key))
}

// Check writes and removes a small file to find out whether files can currently be stored. It
// returns fault.Unavailable if they cannot.
func (d *Disk) Check(ctx context.Context) error {
	const op = "blob.Check"
	probe := path.Join(partial, rand.Text())
	_, err := d.write(ctx, probe, strings.NewReader("probe"))
	if e := d.root.Remove(probe); !absent(e) {
		err = errors.Join(err, e)
	}
	return asUnavailable(op, err)
}

// Open implements Store. It returns fault.NotFound for a key that names a folder.
func (d *Disk) Open(ctx context.Context, key string) (File, error) {
	const op = "blob.Open"
	if err := errors.Join(ctx.Err(), checkKey(op, key)); err != nil {
		return nil, err
	}
	f, err := d.root.Open(key)
	if absent(err) {
		return nil, d.absentFault(op, err)
	}
	if err != nil {
		return nil, unreadable(op, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(op, errors.Join(err, f.Close()))
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Join(fault.New(fault.NotFound, op, "The file does not exist."), f.Close())
	}
	return &diskFile{File: f, size: info.Size()}, nil
}

// absentFault returns NotFound if only the file is missing, and Unavailable if the whole store is
// missing.
func (d *Disk) absentFault(op string, err error) error {
	if _, missing := d.root.Stat(partial); missing != nil {
		return fault.Wrap(fault.Unavailable, op, unreachable, errors.Join(err, missing))
	}
	return fault.Wrap(fault.NotFound, op, "The file does not exist.", err)
}

// Delete implements Store. It does nothing for a key that names a folder.
func (d *Disk) Delete(ctx context.Context, key string) error {
	const op = "blob.Delete"
	if err := errors.Join(ctx.Err(), checkKey(op, key)); err != nil {
		return err
	}
	info, err := d.root.Lstat(key)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return nil
	}
	if err := d.root.Remove(key); !absent(err) {
		return err
	}
	return nil
}

// List implements Store. It reads each folder in pages, so that a folder with many files takes no
// more memory than a small one.
func (d *Disk) List(ctx context.Context, visit func(page []Entry) error) error {
	return d.listDir(ctx, ".", visit)
}

func (d *Disk) listDir(ctx context.Context, dir string, visit func(page []Entry) error) error {
	f, err := d.root.Open(dir)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	var folders []string
	for {
		entries, readErr := f.ReadDir(maxPage)
		var page []Entry
		for _, e := range entries {
			key := path.Join(dir, e.Name())
			switch {
			case !ValidKey(key):
			case e.IsDir():
				folders = append(folders, key)
			case e.Type().IsRegular():
				info, err := e.Info()
				if absent(err) {
					continue
				}
				if err != nil {
					return err
				}
				page = append(page, Entry{Key: key, Size: info.Size(), Stored: info.ModTime()})
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(page) > 0 {
			if err := visit(page); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			return readErr
		}
	}
	for _, folder := range folders {
		if err := d.listDir(ctx, folder, visit); err != nil {
			return err
		}
	}
	return nil
}

// write copies all of r into a new file and syncs it. If write fails, the caller must remove the
// file.
func (d *Disk) write(ctx context.Context, name string, r io.Reader) (int64, error) {
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(f, &ctxReader{ctx: ctx, r: r})
	if err != nil {
		return size, errors.Join(err, f.Close())
	}
	return size, errors.Join(f.Sync(), f.Close())
}

// syncDirs syncs dir and all its parents up to the root, because any of them may be new. After
// that, a new file name survives a power failure.
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

// Clean implements Store.
func (d *Disk) Clean(ctx context.Context, before time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.sweep(before)
}

// sweep deletes files in the partial folder that were last written to before old. Newer files may
// belong to another process that shares the Disk.
func (d *Disk) sweep(old time.Time) error {
	left, err := fs.ReadDir(d.root.FS(), partial)
	if err != nil {
		return err
	}
	for _, entry := range left {
		info, err := entry.Info()
		if absent(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.ModTime().Before(old) {
			continue
		}
		if err := d.root.Remove(path.Join(partial, entry.Name())); err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

// absent reports whether err means that the key does not exist or that part of the key names a
// file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// taken reports whether err means that the key names a folder or that part of the key names a file.
func taken(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist)
}

// unwritable lists the errors for a disk that is full, over quota, read-only or not writable. away
// lists the errors for a disk, network file system or folder that is gone.
var (
	unwritable = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EPERM, syscall.EACCES}
	away       = []error{
		syscall.ENOENT, syscall.EIO, syscall.ESTALE, syscall.ENOTCONN, syscall.EHOSTDOWN, syscall.ENODEV, syscall.ENXIO,
	}
)

// asUnavailable converts err to fault.Unavailable if it means that the disk cannot be written to or
// reached. It returns nil and all other errors, such as errors from Create's reader, unchanged.
func asUnavailable(op string, err error) error {
	means := func(cause error) bool { return errors.Is(err, cause) }
	switch {
	case slices.ContainsFunc(unwritable, means):
		const message = "The server has no space for files or cannot write them; try again later."
		return fault.Wrap(fault.Unavailable, op, message, err)
	case slices.ContainsFunc(away, means):
		return fault.Wrap(fault.Unavailable, op, unreachable, err)
	}
	return err
}

// unreadable is like asUnavailable, but for reads, which need neither free space nor write
// permission.
func unreadable(op string, err error) error {
	if f := asUnavailable(op, err); fault.Is(f, fault.Unavailable) {
		return fault.Wrap(fault.Unavailable, op, unreachable, err)
	}
	return err
}

type diskFile struct {
	*os.File
	size int64
}

func (f *diskFile) Size() int64 { return f.size }

// ctxReader fails with the context's error once the context has ended, which stops a long copy.
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
