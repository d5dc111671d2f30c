package schema

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
)

const productPrefix = "crier"

var (
	prefixForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	roleForm   = regexp.MustCompile(`\bcrier_(tenant|gate|clock|sender|jobs)\b`)
)

// withPrefix renames the roles; the files are written with the product's own prefix.
func withPrefix(sql, prefix string) string {
	if prefix == productPrefix {
		return sql
	}
	return roleForm.ReplaceAllString(sql, prefix+"_$1")
}

// migrations are the names of the numbered files, in order.
func migrations(files fs.FS) []string {
	names, err := fs.Glob(files, "[0-9]*_*.sql")
	if err != nil {
		return nil // only a malformed pattern fails
	}
	return names
}

// rewritten shows goose the files as it wants them: roles renamed, and a file without goose's marks as one forward step, sent whole.
type rewritten struct {
	fs.FS
	prefix string
}

func (r rewritten) Open(name string) (fs.File, error) {
	f, err := r.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	b, err := fs.ReadFile(r.FS, name)
	if err != nil {
		return nil, err
	}
	text := withPrefix(string(b), r.prefix)
	if !strings.Contains(text, "-- +goose Up") {
		text = "-- +goose Up\n-- +goose StatementBegin\n" + text + "\n-- +goose StatementEnd\n"
	}
	return &file{f, strings.NewReader(text)}, nil
}

// ReadDir is needed because embedding hides it from fs.Glob.
func (r rewritten) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

// ReadFile reads what Open shows.
func (r rewritten) ReadFile(name string) ([]byte, error) {
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}

// file is an open file with other content.
type file struct {
	fs.File
	text *strings.Reader
}

func (f *file) Read(p []byte) (int, error) { return f.text.Read(p) }
