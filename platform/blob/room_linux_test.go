package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"crier/platform/fault"
)

// unprivileged calls do. Root may write to any folder, so if the tests run as root, it switches to
// user 65534 for the call.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setfsuid(0); err != nil {
				t.Fatal(err)
			}
		}()
	}
	do()
}

func TestDisk_FolderWithoutPermissionIsUnavailable(t *testing.T) {
	t.Parallel()
	d, dir := newDisk(t)
	if err := d.Check(t.Context()); err != nil {
		t.Fatalf("a folder with permission: %v", err)
	}
	if keys, partials := names(t, dir); len(keys)+partials != 0 {
		t.Fatalf("the check left %v and %d partial files, want none", keys, partials)
	}
	if err := os.Chmod(filepath.Join(dir, partial), 0o500); err != nil {
		t.Fatal(err)
	}
	var created, checked error
	unprivileged(t, func() {
		_, created = d.Create(t.Context(), "k", strings.NewReader("x"))
		checked = d.Check(t.Context())
	})
	for what, err := range map[string]error{"Create": created, "Check": checked} {
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Unavailable || !strings.HasPrefix(f.Message, "The server has no space for files") || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, want Unavailable for the lack of permission", what, err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, partial), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Fatalf("with permission again: %v", err)
	}
}

func TestNoRoom_UnwritableDiskIsUnavailable(t *testing.T) {
	t.Parallel()
	for cause, want := range map[syscall.Errno]fault.Kind{
		syscall.ENOSPC: fault.Unavailable, syscall.EDQUOT: fault.Unavailable, syscall.EROFS: fault.Unavailable, syscall.EPERM: fault.Unavailable, syscall.EACCES: fault.Unavailable,
		syscall.EIO: fault.Unavailable, syscall.ENOENT: fault.Unavailable, syscall.EINVAL: fault.Internal, syscall.EMFILE: fault.Internal,
	} {
		if err := asUnavailable("op", &fs.PathError{Op: "write", Path: "p", Err: cause}); fault.KindOf(err) != want || !errors.Is(err, cause) {
			t.Errorf("%v: %v, want %s with the cause", cause, err, want)
		}
	}
	if err := asUnavailable("op", nil); err != nil {
		t.Errorf("without a cause: %v, want nil", err)
	}
}
