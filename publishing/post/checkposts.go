package post

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Check checks each entry as if it were about to be scheduled, and returns the problems found. It
// stores nothing. It takes neither the plan's limits nor stored posts into account.
//
// It returns Invalid if the command violates a rule that does not depend on the channels. It
// returns TooLarge if the checks take longer than a request may take, and Unavailable if the
// database cannot be reached.
func (s *Posts) Check(
	ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts,
) ([]publishing.Checked, error) {
	const op = "publishing.CheckPosts"
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	known, err := s.checker.lookup(ctx, p, cmd)
	if err != nil {
		return nil, pg.Fault(op, err)
	}
	out := make([]publishing.Checked, 0, len(cmd.Entries))
	entries := make([]checked, 0, len(cmd.Entries))
	for _, e := range cmd.Entries {
		entry, problems := s.checker.checkEntry(ctx, known, e, publishing.CreateSchedule)
		if ctx.Err() != nil {
			return nil, fault.Wrap(fault.TooLarge, op, checkTooSlow, ctx.Err())
		}
		entries = append(entries, entry)
		out = append(out, s.checker.resultOf(e, entry, problems))
	}
	if err := checkTexts(entries); err != nil {
		return nil, err
	}
	return out, nil
}

// resultOf returns the result for an entry with the given problems.
func (s *checker) resultOf(e publishing.CreateEntry, entry checked, problems []fault.Item) publishing.Checked {
	out := publishing.Checked{
		ID: e.Channel, Connector: entry.channel.Connector, Name: entry.channel.Name, Zone: entry.channel.Timezone,
		SettingsProblem: entry.badSettings,
	}
	for _, problem := range problems {
		if len(out.Problems) < fault.MaxListed {
			out.Problems = append(out.Problems, problem.Message)
		}
	}
	if len(entry.parts) > 0 {
		first := entry.parts[0]
		out.Empty = first.empty() && !first.lacking
	}
	c, ok := s.connectors.Get(entry.channel.Connector)
	if !ok {
		return out
	}
	d := c.Describe()
	out.MaxLength = d.MaxLength
	for _, part := range entry.parts {
		out.Length = max(out.Length, connector.Length(part.plain, d.Unit))
	}
	return out
}
