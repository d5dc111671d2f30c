package dbtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// maxColumns is the length of the longest line that a statement may have.
const maxColumns = 120

var (
	statementName  = regexp.MustCompile(`^-- [a-z]+\.[A-Z][A-Za-z]*$`)
	parameterLine  = regexp.MustCompile(`^--   \$(\d+) ([a-z_]+) ([a-z ]+(?:\[\])?): \S`)
	parameterUse   = regexp.MustCompile(`\$(\d+)`)
	prepareExample = regexp.MustCompile(`PREPARE (\w+) (?:\(([^)]*)\) )?AS `)
	explainExample = regexp.MustCompile(`EXPLAIN EXECUTE (\w+)(?: \((?:null(?:, )?)*\))?;`)
	embedded       = regexp.MustCompile(`(?m)^\s*//go:embed sql/(\S+)$`)
)

// statement is a file in a folder sql: a header of comment lines and one statement.
type statement struct {
	name    string   // the file name without .sql
	text    string   // the whole file
	types   []string // the parameters' types in the header
	prepare string   // the line of the header with the PREPARE
	explain string   // the line of the header that explains the prepared statement
}

// CheckStatements tests every file in the folder sql of the package under test.
//
// A file must have the header that publishing/db/README.md describes and no line longer than 120
// columns, and the package must embed it. On a migrated database, the PREPARE and the EXPLAIN of
// its header must succeed, and the types in the header must be the types that Postgres infers.
func CheckStatements(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("the package has no sql/*.sql: %v", err)
	}
	used := embeddedFiles(t)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !used[filepath.Base(file)] {
			t.Errorf("%s is embedded nowhere", file)
		}
		s, faults := parseStatement(filepath.Base(file), string(raw))
		for _, fault := range faults {
			t.Errorf("%s breaks a rule of statements: %s", file, fault)
		}
		if len(faults) > 0 {
			continue
		}
		if err := runStatement(t.Context(), conn, s); err != nil {
			t.Errorf("%s does not run with sample parameters: %v", file, err)
		}
	}
}

// embeddedFiles returns the names of the files in the folder sql that the package embeds.
func embeddedFiles(t *testing.T) map[string]bool {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range embedded.FindAllStringSubmatch(string(raw), -1) {
			used[m[1]] = true
		}
	}
	return used
}

// parseStatement parses a file and returns the faults that can be found without a database.
func parseStatement(file, text string) (s statement, faults []string) {
	s = statement{name: strings.TrimSuffix(file, ".sql"), text: text}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxColumns {
			faults = append(faults, fmt.Sprintf("line %d has %d columns, want at most %d", i+1, n, maxColumns))
		}
	}
	if !statementName.MatchString(lines[0]) {
		faults = append(faults, fmt.Sprintf("the first line is %q, want -- package.Name", lines[0]))
	}
	end := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "--") })
	header, body := lines[:end], strings.Join(lines[end:], "\n")
	var examples string
	for _, line := range header {
		if m := parameterLine.FindStringSubmatch(line); m != nil {
			s.types = append(s.types, m[3])
			if m[1] != strconv.Itoa(len(s.types)) {
				faults = append(faults, fmt.Sprintf("the header has $%s after $%d", m[1], len(s.types)-1))
			}
		}
		examples += strings.TrimSpace(strings.TrimPrefix(line, "--")) + " "
	}
	for _, m := range parameterUse.FindAllStringSubmatch(body, -1) {
		if n, _ := strconv.Atoi(m[1]); n > len(s.types) {
			faults = append(faults, fmt.Sprintf("$%d has no line in the header", n))
		}
	}
	return s, append(faults, s.readExamples(examples)...)
}

// readExamples finds the PREPARE and the EXPLAIN in the header, and returns their faults.
func (s *statement) readExamples(header string) (faults []string) {
	prepare, explain := prepareExample.FindStringSubmatch(header), explainExample.FindStringSubmatch(header)
	if prepare == nil || explain == nil {
		return []string{"the header does not say how to PREPARE and EXPLAIN the statement"}
	}
	s.prepare, s.explain = prepare[0], explain[0]
	if prepare[1] != s.name || explain[1] != s.name {
		faults = append(faults,
			fmt.Sprintf("the header prepares %s and explains %s, want %s", prepare[1], explain[1], s.name))
	}
	if want := strings.Join(s.types, ", "); prepare[2] != want {
		faults = append(faults, fmt.Sprintf("the header prepares (%s), want (%s)", prepare[2], want))
	}
	return faults
}

// runStatement runs the examples in the header, and compares the header's types with the types that
// Postgres infers.
func runStatement(ctx context.Context, conn *pgx.Conn, s statement) error {
	if _, err := conn.Exec(ctx, s.prepare+s.text); err != nil {
		return fmt.Errorf("%s: %w", s.prepare, err)
	}
	if _, err := conn.Exec(ctx, s.explain); err != nil {
		return fmt.Errorf("%s: %w", s.explain, err)
	}
	inferred := s.name + " without types"
	if _, err := conn.Exec(ctx, `prepare "`+inferred+`" as `+s.text); err != nil {
		return err
	}
	var got, want string
	err := conn.QueryRow(ctx, `select a.parameter_types::text, b.parameter_types::text
		from pg_prepared_statements a, pg_prepared_statements b where a.name = $1 and b.name = $2`,
		s.name, inferred).Scan(&got, &want)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("the header has the types %s, and Postgres infers %s", got, want)
	}
	return nil
}
