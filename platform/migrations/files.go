package migrations

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"regexp"
	"strings"

	"github.com/pressly/goose/v3"

	"crier/platform/fault"
)

const (
	productPrefix = "crier"

	// concurrentSuffix ends the name of a file whose one statement runs outside of a transaction.
	concurrentSuffix = ".concurrently.sql"
)

var (
	prefixForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	roleForm    = regexp.MustCompile(`\bcrier_(tenant|gate|clock|sender|jobs|retention)\b`)
	commentForm = regexp.MustCompile(`--[^\n]*`)

	// What a file outside of a transaction may hold: each of these may be repeated after a crash.
	createForm   = regexp.MustCompile(`^create (?:unique )?index concurrently if not exists (\w+) on [^;]*;?$`)
	dropForm     = regexp.MustCompile(`^drop index concurrently if exists \w+;?$`)
	validateForm = regexp.MustCompile(`^alter table \w+ validate constraint \w+;?$`)
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

// plain is SQL without comments and line breaks.
func plain(sql []byte) string {
	return strings.Join(strings.Fields(commentForm.ReplaceAllString(string(sql), "")), " ")
}

// baselineOf identifies the first migration by its statements: a comment in it may change, nothing else. "" is no
// migration.
func baselineOf(files fs.FS) (string, error) {
	names := migrations(files)
	if len(names) == 0 {
		return "", nil
	}
	text, err := fs.ReadFile(files, names[0])
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(plain(text)))
	return hex.EncodeToString(sum[:8]), nil
}

func isConcurrent(name string) bool { return strings.HasSuffix(name, concurrentSuffix) }

// createdIndex returns the index that a file outside of a transaction creates, "" for none. A file that holds anything
// but the one statement that it may hold is Invalid.
func createdIndex(files fs.FS, name string) (string, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return "", err
	}
	sql := plain(bytes.ToLower(text))
	if create := createForm.FindStringSubmatch(sql); create != nil {
		return create[1], nil
	}
	if dropForm.MatchString(sql) || validateForm.MatchString(sql) {
		return "", nil
	}
	return "", fault.New(fault.Invalid, "schema.Migrate", "The migration "+name+" must be one statement: create index "+
		"concurrently if not exists, drop index concurrently if exists, or alter table with validate constraint.")
}

// rewritten shows goose the files as it wants them: roles renamed, and each file as one forward step, sent whole.
// The first one also writes down which baseline it is, as a value in the rows of goose's table: that survives a copy that
// leaves out comments, or everything but rows.
type rewritten struct {
	fs.FS
	prefix   string
	baseline string
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
	if name == migrations(r.FS)[0] {
		text += ";\nalter table " + goose.DefaultTablename + " add column baseline text default '" + r.baseline + "'"
	}
	text = "-- +goose Up\n-- +goose StatementBegin\n" + text + "\n-- +goose StatementEnd\n"
	if isConcurrent(name) {
		text = "-- +goose NO TRANSACTION\n" + text
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
