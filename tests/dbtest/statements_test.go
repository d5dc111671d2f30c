package dbtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

const goodStatement = `-- publishing.CountPosts
--
-- Counts the posts of an organization.
--
--   $1 org uuid: the organization
--   $2 states text[]: their states
--
--   PREPARE count_posts (uuid, text[]) AS
--   EXPLAIN EXECUTE count_posts (null, null);
select count(*) from post where org_id = $1 and state = any ($2)
`

func TestParseStatement_NamesFaults(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ old, now, want string }{
		"nothing": {old: "", now: "", want: ""},
		"no name": {
			old: "-- publishing.CountPosts\n", now: "-- counts posts\n",
			want: `the first line is "-- counts posts", want -- package.Name`,
		},
		"a long line": {
			old: "where org_id", now: strings.Repeat(" ", 80) + "where org_id",
			want: "line 10 has 144 columns, want at most 120",
		},
		"a parameter of no line":  {old: "= $1", now: "= $3", want: "$3 has no line in the header"},
		"a wrong number":          {old: "$2 states", now: "$3 states", want: "the header has $3 after $1"},
		"no example":              {old: "EXPLAIN EXECUTE", now: "EXPLAIN", want: "the header does not say how to PREPARE and EXPLAIN the statement"},
		"an example with another": {old: "(uuid, text[]) AS", now: "(uuid, text) AS", want: "the header prepares (uuid, text), want (uuid, text[])"},
		"another name": {
			old: "EXECUTE count_posts", now: "EXECUTE counts",
			want: "the header prepares count_posts and explains counts, want count_posts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := parseStatement("count_posts.sql", strings.Replace(goodStatement, x.old, x.now, 1))
			if x.want == "" && len(faults) > 0 || x.want != "" && !slices.Contains(faults, x.want) {
				t.Errorf("got %q, want %q", faults, x.want)
			}
		})
	}
}

func TestRunStatement_ComparesTypes(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for name, x := range map[string]struct{ old, now, want string }{
		"count_posts": {old: "", now: "", want: ""},
		"other_type":  {old: "uuid", now: "text", want: "uuid = text"},
		"wider_array": {old: "text[]", now: "varchar[]", want: "the header has the types"},
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(goodStatement, x.old, x.now), "count_posts", name)
		if x.old == "" {
			text = goodStatement
		}
		s, faults := parseStatement(name+".sql", text)
		if len(faults) > 0 {
			t.Fatalf("%s: got the faults %q, want none", name, faults)
		}
		err := runStatement(t.Context(), conn, s)
		if (err != nil) != (x.want != "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", name, err, x.want)
		}
	}
}
