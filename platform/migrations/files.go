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

	// concurrentSuffix is the suffix of files that contain a single statement that runs outside a
	// transaction. Example: 0007_post_index.concurrently.sql
	concurrentSuffix = ".concurrently.sql"
)

var (
	prefixForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	roleForm    = regexp.MustCompile(`\bcrier_(tenant|gate|clock|sender|jobs|retention)\b`)
	commentForm = regexp.MustCompile(`--[^\n]*`)

	// These patterns match the statements that are allowed outside a transaction. Each of these
	// statements can be repeated after a crash.
	createForm   = regexp.MustCompile(`^create (?:unique )?index concurrently if not exists (\w+) on [^;]*;?$`)
	dropForm     = regexp.MustCompile(`^drop index concurrently if exists \w+;?$`)
	validateForm = regexp.MustCompile(`^alter table \w+ validate constraint \w+;?$`)
)

// withPrefix replaces productPrefix, which is the role prefix in the files, with prefix.
func withPrefix(sql, prefix string) string {
	if prefix == productPrefix {
		return sql
	}
	return roleForm.ReplaceAllString(sql, prefix+"_$1")
}

// fileNames returns the names of the numbered files, in order.
func fileNames(files fs.FS) []string {
	names, err := fs.Glob(files, "[0-9]*_*.sql")
	if err != nil {
		return nil // only a malformed pattern fails
	}
	return names
}

// normalize returns the SQL without its comments and line breaks.
func normalize(sql []byte) string {
	return strings.Join(strings.Fields(commentForm.ReplaceAllString(string(sql), "")), " ")
}

// baselineOf returns a hash of the first migration's statements, without comments. It returns "" if
// there is no migration.
func baselineOf(files fs.FS) (string, error) {
	names := fileNames(files)
	if len(names) == 0 {
		return "", nil
	}
	text, err := fs.ReadFile(files, names[0])
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(normalize(text)))
	return hex.EncodeToString(sum[:8]), nil
}

func isConcurrent(name string) bool { return strings.HasSuffix(name, concurrentSuffix) }

// createdIndex returns the name of the index that a file creates outside a transaction. It returns
// "" if the file contains a different statement that is allowed there, and fault.Invalid for any
// other content.
func createdIndex(files fs.FS, name string) (string, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return "", err
	}
	sql := normalize(bytes.ToLower(text))
	if create := createForm.FindStringSubmatch(sql); create != nil {
		return create[1], nil
	}
	if dropForm.MatchString(sql) || validateForm.MatchString(sql) {
		return "", nil
	}
	return "", fault.New(fault.Invalid, "migrations.Migrate", "The migration "+name+" must be one statement: create "+
		"index concurrently if not exists, drop index concurrently if exists, or alter table with validate constraint.")
}

// gooseFiles converts the files to goose's format and replaces the role prefix with the configured
// one. Each file becomes a single goose statement, which is sent to Postgres as a whole.
//
// The first file also stores its baseline in the rows of goose's table. A comment on a database
// object would not be enough, because comments can be lost when a database is copied.
type gooseFiles struct {
	fs.FS
	prefix   string
	baseline string
}

// Open opens a file and converts SQL files to goose's format.
func (r gooseFiles) Open(name string) (fs.File, error) {
	f, err := r.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	b, err := fs.ReadFile(r.FS, name)
	if err != nil {
		return nil, err
	}
	text := withPrefix(string(b), r.prefix)
	if name == fileNames(r.FS)[0] {
		text += ";\nalter table " + goose.DefaultTablename + " add column baseline text default '" + r.baseline + "'"
	}
	text = "-- +goose Up\n-- +goose StatementBegin\n" + text + "\n-- +goose StatementEnd\n"
	if isConcurrent(name) {
		text = "-- +goose NO TRANSACTION\n" + text
	}
	return &rewrittenFile{File: f, text: strings.NewReader(text)}, nil
}

// ReadDir reads a directory. fs.Glob needs this method, because the embedded FS's ReadDir is hidden
// behind the fs.FS interface.
func (r gooseFiles) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

func (r gooseFiles) ReadFile(name string) ([]byte, error) {
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}

// rewrittenFile is an open file whose content is replaced by text. Its Stat still returns the
// original size.
type rewrittenFile struct {
	fs.File
	text *strings.Reader
}

func (f *rewrittenFile) Read(p []byte) (int, error) { return f.text.Read(p) }
