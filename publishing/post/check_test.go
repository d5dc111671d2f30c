package post_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tests/publishtest"
)

// check returns what the rules report about the entries.
func (r *rig) check(entries ...publishing.CreateEntry) []publishing.Checked {
	r.Helper()
	out, err := r.posts.Check(r.Context(), r.who, command(publishing.CreateSchedule, entries...))
	r.OK(err)
	return out
}

// checked is the result for an entry of the rig's channel.
func (r *rig) checked(length int, problems ...string) publishing.Checked {
	return publishing.Checked{
		ID: r.channel.String(), Connector: "sandbox", Name: "Channel", Zone: "UTC", Problems: problems,
		MaxLength: 20, Length: length,
	}
}

func TestCheck_ReportsTheProblemsOfEveryEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	disabled, none := r.Connect(r.who.Org), id.New[publishing.ChannelTag]()
	r.Tenant(r.who.Org, `update channel set disabled = true where id = $1`, disabled)
	settings, long := entry(r.channel, "a text"), strings.Repeat("é", 21)
	settings.Settings = json.RawMessage(`{"wrong": true}`)
	wrong := r.checked(6, "The settings are wrong.")
	wrong.SettingsProblem = true
	off := r.checked(7, "The channel is disabled.")
	off.ID = disabled.String()
	got := r.check(
		entry(r.channel, "a text"),
		entry(r.channel, "refused", "a longer text", "refused"),
		entry(none, "a text"),
		settings,
		entry(disabled, "refused"), // the platform's rules are not applied to it
		entry(r.channel, "short", long),
	)
	want := []publishing.Checked{
		r.checked(6),
		r.checked(13, "Part 1: The text is refused.", "Part 3: The text is refused."),
		{ID: none.String(), Problems: []string{"There is no channel with the id " + connector.Quote(none.String()) + "."}},
		wrong,
		off,
		r.checked(21),
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("entry %d: got %+v, want %+v", i, got[i], want[i])
		}
		if tooLong := i == 5; got[i].TooLong() != tooLong {
			t.Errorf("entry %d: it is too long: %t, want %t", i, got[i].TooLong(), tooLong)
		}
	}
}

// A check ignores the type: a draft is checked as if it were to be scheduled.
func TestCheck_StoresNothingAndIgnoresTheType(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, kind := range []publishing.CreateType{
		publishing.CreateNow, publishing.CreateSchedule, publishing.CreateDraft,
	} {
		cmd := command(kind, entry(r.channel, "a text"), entry(r.channel, "refused"))
		cmd.IdempotencyKey, cmd.RequestHash = "key", []byte("hash")
		out, err := r.posts.Check(t.Context(), r.who, cmd)
		if err != nil || len(out) != 2 || len(out[0].Problems) != 0 || len(out[1].Problems) != 1 {
			t.Errorf("%s: got %+v, %v; want the problem of the second entry", kind, out, err)
		}
	}
	r.wantStored(0)
	r.wantWoken()
	made, err := r.create(keyed("key", "hash", entry(r.channel, "a text")))
	if err != nil || made.Replayed {
		t.Errorf("a post with the key of a check: got %+v, %v; want it made", made, err)
	}
}

func TestCheck_EmptyMeansFirstPartHasNoTextOrMedia(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	withFile := entry(r.channel, "")
	withFile.Parts[0].Media = []publishing.CreateMedium{{ID: r.Medium(r.who.Org).ID.String()}}
	lacking := entry(r.channel, "")
	lacking.Parts[0].Media = []publishing.CreateMedium{{ID: "x"}}
	for name, c := range map[string]struct {
		entry    publishing.CreateEntry
		empty    bool
		problems []string
	}{
		"no text":                    {entry: entry(r.channel, ""), empty: true, problems: []string{"The part is empty."}},
		"no text in the second part": {entry: entry(r.channel, "a text", ""), problems: []string{"Part 2: The part is empty."}},
		"a file":                     {entry: withFile},
		"a file that does not exist": {entry: lacking, problems: []string{`There is no file with the id "x".`}},
	} {
		got := r.check(c.entry)[0]
		if got.Empty != c.empty || !slices.Equal(got.Problems, c.problems) {
			t.Errorf("%s: got empty %t and the problems %q, want %t and %q",
				name, got.Empty, got.Problems, c.empty, c.problems)
		}
	}
}

func TestCheck_FindsFilesByIDAndByAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine, deleted, theirs := r.Medium(r.who.Org), r.Medium(r.who.Org), r.Medium(r.Organization().Org)
	r.Tenant(r.who.Org, `update media set deleted_at = now() where id = $1`, deleted.ID)
	here := publishtest.Limits.BaseURL
	for name, c := range map[string]struct {
		medium publishing.CreateMedium
		want   string // "" if it is found
	}{
		"its id":          {medium: publishing.CreateMedium{ID: mine.ID.String()}},
		"its id in upper": {medium: publishing.CreateMedium{ID: strings.ToUpper(mine.ID.String())}},
		"its address":     {medium: publishing.CreateMedium{URL: here + mine.Path()}},
		"its path":        {medium: publishing.CreateMedium{URL: mine.Path()}},
		"the address wins over the id": {
			medium: publishing.CreateMedium{ID: mine.ID.String(), URL: here + "/files/none/a.png"},
			want:   `There is no file at "` + here + `/files/none/a.png".`,
		},
		"another address": {
			medium: publishing.CreateMedium{URL: "https://elsewhere.test/a.png"},
			want: `The file "https://elsewhere.test/a.png" is not on this service: upload it first with POST /upload, ` +
				"or with POST /upload-from-url from its address.",
		},
		"a deleted file": {
			medium: publishing.CreateMedium{ID: deleted.ID.String()},
			want:   `There is no file with the id "` + deleted.ID.String() + `".`,
		},
		"another organization's file": {
			medium: publishing.CreateMedium{ID: theirs.ID.String()},
			want:   `There is no file with the id "` + theirs.ID.String() + `".`,
		},
		"the address of another organization's file": {
			medium: publishing.CreateMedium{URL: here + theirs.Path()},
			want:   `There is no file at "` + here + theirs.Path() + `".`,
		},
	} {
		e := entry(r.channel, "a text", "a text")
		e.Parts[1].Media = []publishing.CreateMedium{c.medium}
		var want []string
		if c.want != "" {
			want = []string{"Part 2: " + c.want}
		}
		if got := r.check(e)[0].Problems; !slices.Equal(got, want) {
			t.Errorf("%s: got the problems %q, want %q", name, got, want)
		}
	}
}

// A text that is too long for every platform is not measured by the platform's rules.
func TestCheck_TextLongerThanAnyPlatformAllows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("a", publishing.MaxText+1)
	want := r.checked(publishing.MaxText+1,
		fmt.Sprintf("Part 1: The text is longer than %d characters, markup included.", publishing.MaxText),
		"Part 2: The text is refused.")
	if got := r.check(entry(r.channel, long, "refused"))[0]; !reflect.DeepEqual(got, want) || !got.TooLong() {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCheck_LimitsTheListedProblems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.check(entry(r.channel, slices.Repeat([]string{"refused"}, fault.MaxListed+10)...))[0]
	if len(got.Problems) != fault.MaxListed {
		t.Errorf("%d problems are listed, want %d", len(got.Problems), fault.MaxListed)
	}
}

func TestCheck_RefusesACommandThatBreaksALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	many := slices.Repeat([]publishing.CreateEntry{entry(r.channel, "a text")}, publishing.MaxEntries+1)
	for name, entries := range map[string][]publishing.CreateEntry{"no entry": nil, "too many entries": many} {
		out, err := r.posts.Check(t.Context(), r.who, command(publishing.CreateSchedule, entries...))
		if !fault.Is(err, fault.Invalid) || out != nil {
			t.Errorf("%s: got %v, %v; want Invalid", name, out, err)
		}
	}
}
