package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"crier/platform/failpoint"
)

// swap replaces each occurrence of old in a file. The file must have exactly count of them.
type swap struct {
	file, old, now string
	count          int
}

// mutant is a bug that is built into the service to test the judge. A harmless mutant removes one
// of two guards, and a run with it must pass.
type mutant struct {
	name  string
	swaps []swap
	// sql is executed on the database, in addition to the swaps.
	sql   string
	nodes int
	// fault is the kind of fault that reveals the bug. A third of the faults are of this kind.
	fault string
	// point is the failpoint at which the process stops in that fault, or "" for any.
	point string
	// count returns the count that the bug must raise.
	count    func(*verdict) int
	harmless bool
}

// caught reports whether a run detected the mutant. For a harmful mutant, only its own count
// matters, because a stalled machine may raise others.
func (x mutant) caught(v *verdict) bool {
	if x.harmless {
		return !v.clean()
	}
	return x.count(v) > 0
}

// expected reports whether a run ended as it must. The run of a harmless mutant must also have
// stopped processes inside calls, because the guards exist for such stops.
func (x mutant) expected(v *verdict) bool {
	if x.harmless {
		return !x.caught(v) && v.InFlight > 0 && v.StopsCommitting > 0
	}
	return x.caught(v)
}

func twice(v *verdict) int { return v.Twice }

// late counts the effects of a call that is made after its deadline: a second publication, or one
// behind a later post of the channel.
func late(v *verdict) int { return v.Twice + v.OutOfOrder }

const (
	reapFile    = "publishing/scheduler/store/sql/reap.sql"
	claimFile   = "publishing/scheduler/store/sql/claim.sql"
	unknownFile = "publishing/scheduler/store/sql/find_unknown.sql"
	sweepFile   = "publishing/scheduler/store/sql/sweep.sql"
	channelFile = "publishing/scheduler/store/sql/sweep_channels.sql"
	seriesFile  = "publishing/post/store/sql/find_ended_series.sql"
	finishFile  = "publishing/scheduler/store/sql/finish.sql"
	markFile    = "publishing/scheduler/store/sql/mark_committing.sql"
	findFile    = "publishing/scheduler/store/maintain.go"
	publishFile = "publishing/scheduler/send.go"
	createFile  = "publishing/post/create.go"
	pauseFile   = "publishing/scheduler/store/pause.go"
)

// anyOwner removes from a statement the condition that the process owns the shard and that its
// lease has not ended.
func anyOwner(file string) []swap {
	return []swap{
		{file: file, old: "and s.owner = $2\n", now: "and $2::uuid is not null\n", count: 1},
		{
			file:  file,
			old:   "and exists (select from node n where n.id = $2 and n.expires_at > clock_timestamp())",
			count: 1,
		},
	}
}

// requeueCommitting lets a reap return posts to the queue even if their calls may have been made.
func requeueCommitting() []swap {
	return []swap{
		{file: reapFile, old: "      when p.phase = 'committing' then 'UNKNOWN'\n", count: 1},
		{
			file: reapFile, old: "    error = case\n      when p.phase = 'committing' then null\n",
			now: "    error = case\n", count: 1,
		},
		{
			file: reapFile, old: "    error_code = case\n      when p.phase = 'committing' then null\n",
			now: "    error_code = case\n", count: 1,
		},
		{
			file: reapFile, old: "outcome_unknown = p.phase <> 'committing' and p.maybe_sent\n",
			now: "outcome_unknown = p.maybe_sent\n", count: 1,
		},
		{
			file: reapFile, old: "maybe_sent = p.maybe_sent or p.phase = 'committing',",
			now: "maybe_sent = p.maybe_sent,", count: 1,
		},
		{
			file: reapFile, old: "claim_until = case when p.phase = 'committing' then now() end",
			now: "claim_until = null", count: 1,
		},
		{
			file: reapFile, old: "claim_token = case when p.phase = 'committing' then p.claim_token end",
			now: "claim_token = null", count: 1,
		},
		{
			file: reapFile, old: "claim_holder = case when p.phase = 'committing' then p.claim_holder end",
			now: "claim_holder = null", count: 1,
		},
		{
			file: reapFile, old: "phase = case when p.phase = 'committing' then p.phase end",
			now: "phase = null", count: 1,
		},
	}
}

const dropIndex = "drop index post_one_per_channel"

// mutants returns all mutants.
func mutants() []mutant {
	return []mutant{
		{
			name: "reap-requeues", nodes: 1, fault: haltKill, point: failpoint.Answered, count: twice,
			swaps: requeueCommitting(),
		},
		{
			name: "forgets-maybe-sent", nodes: 1, fault: silence,
			count: func(v *verdict) int { return v.UnknownForgotten },
			swaps: []swap{
				{
					file: finishFile, old: "else l.maybe_sent and not l.proven end as outcome_unknown",
					now: "else false end as outcome_unknown", count: 1,
				},
				{file: finishFile, old: "else x.maybe_sent and not v.proven end,", now: "else false end,", count: 1},
			},
		},
		{name: "no-token", nodes: 2, fault: haltTwice, count: twice, swaps: []swap{
			{file: markFile, old: "where p.claim_token = m.token and (p.state = 'PUBLISHING') is true\n  order by",
				now: "where (p.state = 'PUBLISHING') is true\n  order by", count: 1},
			{file: markFile, old: "where p.id = any (array[m.post]) and p.claim_token = m.token " +
				"and (p.state = 'PUBLISHING') is true\n",
				now: "where p.id = any (array[m.post]) and (p.state = 'PUBLISHING') is true\n", count: 1},
			{file: finishFile, old: "(p.claim_token = o.token) is true as current", now: "true as current", count: 1},
			{file: finishFile, old: "where p.claim_token = o.token\n    or o.sent",
				now: "where true\n    or o.sent", count: 1},
		}},
		{
			name: "no-busy-no-index", nodes: 2, fault: haltTwice, sql: dropIndex,
			count: func(v *verdict) int { return v.OutOfOrder },
			swaps: []swap{
				{
					file: claimFile, old: "where s.busy_post is null and p.channel_id = s.channel_id and",
					now: "where p.channel_id = s.channel_id and", count: 1,
				},
				{file: claimFile, old: "    union all\n    select p.id, p.due, p.not_before, p.revision from post p\n" +
					"    where p.id = s.busy_post and (p.state = 'QUEUE') is true and p.deleted_at is null\n" +
					"      and p.due > now() - $7 * interval '1 millisecond') h", now: ") h", count: 1},
				{
					file: claimFile, old: "where (q.busy_post is null or q.busy_post = h.post_id) and not q.parked",
					now: "where not q.parked", count: 1,
				},
			},
		},
		{name: "backoff-in-due", nodes: 1, count: func(v *verdict) int { return v.DueMoved }, swaps: []swap{
			{
				file: finishFile,
				old: "not_before = case when v.becomes = 'QUEUE' and v.result = 'retry' and v.after_ms > 0\n" +
					"      then now() + v.after_ms * interval '1 millisecond' end,",
				now: "due = case when v.result = 'retry' and v.after_ms > 0 " +
					"then now() + v.after_ms * interval '1 millisecond' else p.due end,",
				count: 1,
			},
		}},
		{name: "early-201", nodes: 1, count: func(v *verdict) int { return v.Lost }, swaps: []swap{
			{
				file: createFile,
				old:  "	err = s.db.InOrgToWrite(ctx, p, func(tx *db.Tx) error {\n		out, due",
				now:  "	err = s.early(ctx, p, func(tx *db.Tx) error {\n		out, due", count: 1,
			},
			{file: createFile, old: "func holdChannels(", now: earlyAnswer + "\nfunc holdChannels(", count: 1},
		}},
		{name: "deaf-to-pauses", nodes: 1, count: func(v *verdict) int { return v.SentWhilePaused }, swaps: []swap{
			{file: pauseFile, old: "set paused = s.paused,", now: "set paused = false,", count: 1},
		}},
		{name: "no-member-gate", nodes: 3, harmless: true, swaps: slices.Concat(
			anyOwner(claimFile), anyOwner(sweepFile), anyOwner(channelFile), anyOwner(findFile), anyOwner(unknownFile),
			anyOwner(seriesFile))},
		// The limit starts with the call instead of the claim.
		{name: "no-deadline", nodes: 2, fault: haltLong, point: failpoint.Committing, count: late, swaps: []swap{
			{
				file: publishFile, old: "	left, _ := outbound.Left(ctx)\n",
				now: "	left := r.cfg.PlatformTimeout\n	ctx = outbound.WithLimit(ctx, left)\n", count: 1,
			},
		}},
		{name: "no-index", nodes: 3, harmless: true, sql: dropIndex},
	}
}

// earlyAnswer is a function that returns to the caller before the transaction commits.
const earlyAnswer = `func (s *Posts) early(ctx context.Context, p tenancy.Principal, fn func(*db.Tx) error) error {
	ended := make(chan error, 2)
	go func() {
		ended <- s.db.InOrgToWrite(context.WithoutCancel(ctx), p, func(tx *db.Tx) error {
			err := fn(tx)
			if err == nil {
				select {
				case ended <- nil:
				default:
				}
				time.Sleep(100 * time.Millisecond)
			}
			return err
		})
	}()
	return <-ended
}
`

func mutantNames() string {
	var names []string
	for _, x := range mutants() {
		names = append(names, x.name)
	}
	return strings.Join(names, ", ")
}

func findMutant(name string) (mutant, error) {
	i := slices.IndexFunc(mutants(), func(x mutant) bool { return x.name == name })
	if i < 0 {
		return mutant{}, fmt.Errorf("there is no mutant %q; there are %s", name, mutantNames())
	}
	return mutants()[i], nil
}

// mutate writes the changed files, and an overlay for the go command that maps the originals to
// them. It returns the path of the overlay.
func mutate(x mutant, dir, root string) (string, error) {
	replace := map[string]string{}
	for _, s := range x.swaps {
		original := filepath.Join(root, s.file)
		from := original
		if replace[original] != "" {
			from = replace[original]
		}
		raw, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(raw), s.old); n != s.count {
			return "", fmt.Errorf("mutant %s: %s has this text %d times, not %d: %q", x.name, s.file, n, s.count, s.old)
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(s.file, "/", "_"))
		if err := os.WriteFile(
			replace[original], []byte(strings.ReplaceAll(string(raw), s.old, s.now)), 0o600,
		); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o600)
}

// runMutants runs every mutant. The judge must detect the harmful mutants and pass the harmless
// ones. wrong is the number of runs that ended otherwise.
func runMutants(ctx context.Context, s settings, out, log io.Writer) (wrong int, err error) {
	for _, x := range mutants() {
		s.Mutant, s.Nodes = x.name, x.nodes
		v, err := run(ctx, s, log)
		if err != nil {
			return wrong, fmt.Errorf("mutant %s: %w", x.name, err)
		}
		right := x.expected(&v)
		if !right {
			wrong++
		}
		if err := json.NewEncoder(out).Encode(map[string]any{
			"mutant": x.name, "harmless": x.harmless, "caught": x.caught(&v), "asExpected": right, "run": v,
		}); err != nil {
			return wrong, err
		}
	}
	return wrong, nil
}
