package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"crier/apps/edge/mcp/argument"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// replayTime is how long a repeated call without an idempotency key returns the first call's
// result. Models repeat a call if its result was lost.
const replayTime = 10 * time.Minute

type createInput struct {
	Posts          []createEntry `json:"socialPost"`
	Key            string        `json:"idempotencyKey"`
	AllowDuplicate bool          `json:"allowDuplicate"`
	DryRun         bool          `json:"dryRun"`
}

// createEntry is a post on one channel.
type createEntry struct {
	Channel  string     `json:"integrationId"`
	Type     string     `json:"type"`
	Date     *time.Time `json:"date"`
	Parts    []part     `json:"postsAndComments"`
	Settings []pair     `json:"settings"`
}

// createdAnswer describes a created post. In a dry run, PostID is empty.
type createdAnswer struct {
	PostID      string `json:"postId,omitempty"`
	Integration string `json:"integration"`
	State       string `json:"state"`
	moment
	Check *checkAnswer `json:"check,omitempty"`
}

// checkAnswer reports whether a post follows its platform's rules.
type checkAnswer struct {
	Valid             bool     `json:"valid"`
	Problems          []string `json:"problems"`
	Length            int      `json:"length"`
	MaximumCharacters int      `json:"maximumCharacters"`
}

// createFields maps the fields of a CreatePosts command to tool arguments.
var createFields = map[string]string{
	"entries": "socialPost", "channel": "integrationId", "parts": "postsAndComments", "media": "attachments",
	"alt": "altTexts",
}

func (a postTools) createPost() *tool {
	entry := arguments(properties{
		"integrationId": channelID(),
		"type": oneOf("draft saves the post, schedule queues it for date, now publishes it at once.",
			"draft", "schedule", "now"),
		"date": date("When to publish, with an offset, such as 2026-01-02T15:04:05+01:00. Must be in the future. Required unless " +
			"type is now; drafts need one too."),
		"postsAndComments": parts(),
		"settings":         settings(),
		"shortLink":        flag("Has no effect."),
		"isPremium":        flag("Has no effect."),
	}, "integrationId", "type", "postsAndComments").As("A post on one channel.")
	created := object("A post.", withMoment(properties{
		"postId": str("Post id. Absent in a dry run."), "integration": str("Channel id."),
		"state": oneOf("State of the post. In a dry run, the state it would have.", "DRAFT", "QUEUE"),
		"check": object("Only in a dry run.", properties{
			"valid":             flag("Whether the post follows the platform's rules."),
			"problems":          list("What is wrong.", str("A problem.")),
			"length":            number("Length of the longest part."),
			"maximumCharacters": number("Maximum length; 0: no limit."),
		}, "valid", "problems"),
	}), "integration", "state", "publishDate")
	return &tool{
		name: toolCreatePost, olderName: "schedulePostTool", title: "Create posts", writes: true, destroys: true,
		open: true,
		description: "Save, schedule or publish posts, one per element of socialPost. Either all are created or none. All must have the " +
			"same type. Read the rules with " + toolSchema + ", upload files with " + toolUpload + " first, and check with " +
			"dryRun: true. A call repeated within 10 minutes creates nothing and returns the first result, with replayed: " +
			"true. Posting the same text to a channel twice within a day requires allowDuplicate: true.",
		input: arguments(properties{
			"socialPost": list("The posts.", entry).Between(1, publishing.MaxEntries),
			"idempotencyKey": atMost(publishing.MaxIdempotencyKey,
				"Any string of visible ASCII characters. Calls with the same key create the posts only once."),
			"allowDuplicate": flag("Create a post even if its channel has another one with the same text within a " +
				"day.").Standard(false),
			"dryRun": flag("Only check: create nothing, and report what would happen.").Standard(false),
		}, "socialPost"),
		output: answers(list("The posts, in the order of the call.", created), properties{
			"replayed": flag("true: this is the result of an earlier call."),
			"dryRun":   flag("true: nothing was created."),
		}),
		fields: createFields,
		run:    runner(a.runCreatePost),
	}
}

func (a postTools) runCreatePost(ctx context.Context, c *call, in createInput) (answer, error) {
	if err := c.checkDraftsOnly(in.Posts); err != nil {
		return answer{}, err
	}
	cmd, err := a.createCommand(c, in)
	if err != nil {
		return answer{}, err
	}
	if in.DryRun {
		return a.dryRun(ctx, c, in, cmd)
	}
	made, err := a.deps.Posts.Create(ctx, c.p, cmd)
	if err != nil {
		return answer{}, createFailure(in, err)
	}
	if made.Mismatch {
		return answer{}, &failure{
			Code: string(fault.Conflict), Field: "idempotencyKey",
			Message: "A different call has used this idempotencyKey. Nothing was created: send a new key.",
		}
	}
	out := make([]createdAnswer, 0, len(made.Created))
	for i, x := range made.Created {
		one := createdAnswer{
			PostID: x.Post.String(), Integration: x.Channel.String(), State: stateAfter(cmd.Type),
			moment: momentIn(x.Date, x.Zone),
		}
		if x.Date.IsZero() && i < len(in.Posts) {
			one.moment = momentIn(c.dateOf(in.Posts[i]), x.Zone)
		}
		out = append(out, one)
	}
	return answer{Output: out, Replayed: made.Replayed}, nil
}

// checkDraftsOnly returns a failure for the first post that is not a draft if the call's agent may
// create only drafts. It runs before the check that all posts have the same type. Otherwise, that
// check could suggest a type that the agent may not use.
func (c *call) checkDraftsOnly(posts []createEntry) error {
	const draft = string(publishing.CreateDraft)
	at := slices.IndexFunc(posts, func(e createEntry) bool { return e.Type != draft })
	if at < 0 || !c.mustAsk() {
		return nil
	}
	return &failure{
		Code: string(fault.Forbidden), Field: fmt.Sprintf("socialPost.%d.type", at), Allowed: []any{draft},
		Message: "This app may create drafts only. Send the call again with type draft for every post, then request approval for " +
			"each postId with " + toolAskApproval + ". Nothing was created.",
		Next: &nextCall{Tool: toolAskApproval, Arguments: map[string]any{}},
	}
}

// stateAfter returns the state of a newly created post.
func stateAfter(t publishing.CreateType) string {
	if t == publishing.CreateDraft {
		return string(publishing.StateDraft)
	}
	return string(publishing.StateQueue)
}

// createCommand returns the command for a call.
func (a postTools) createCommand(c *call, in createInput) (publishing.CreatePosts, error) {
	cmd := publishing.CreatePosts{
		Type: publishing.CreateType(in.Posts[0].Type), Method: publishing.MethodMCP, NoDuplicates: !in.AllowDuplicate,
		DryRun: in.DryRun,
	}
	for i, e := range in.Posts {
		at := fmt.Sprintf("socialPost.%d", i)
		if e.Type != in.Posts[0].Type {
			return cmd, &failure{
				Code: argument.CodeInvalid, Field: at + ".type", Allowed: []any{in.Posts[0].Type},
				Message: "All posts of one call must have the same type. Send the others in another call.",
			}
		}
		if err := c.checkDate(at, e); err != nil {
			return cmd, err
		}
		list, err := a.partsOf(c, at, e.Parts)
		if err != nil {
			return cmd, err
		}
		values, err := settingsOf(e.Settings)
		if err != nil {
			return cmd, err
		}
		entry := publishing.CreateEntry{Channel: e.Channel, Parts: list, Settings: values}
		if e.Type != string(publishing.CreateNow) {
			entry.Date = *e.Date
		}
		cmd.Entries = append(cmd.Entries, entry)
	}
	cmd.Date = c.dateOf(in.Posts[0])
	return cmd, c.identify(&cmd, in)
}

// dateOf returns the time at which one of the call's posts is due.
func (c *call) dateOf(e createEntry) time.Time {
	if e.Type == string(publishing.CreateNow) || e.Date == nil {
		return c.now
	}
	return *e.Date
}

// checkDate returns a failure if a post has no date or its date is not in the future. A post that
// is published immediately needs no date. at is the post's path.
func (c *call) checkDate(at string, e createEntry) error {
	if e.Type == string(publishing.CreateNow) {
		return nil
	}
	if e.Date == nil {
		return &failure{
			Code: argument.CodeMissing, Field: at + ".date",
			Message: at + ".date is missing. Only posts of type now can omit it.",
			Next:    &nextCall{Tool: toolFindSlot, Arguments: map[string]any{"integrationId": e.Channel}},
		}
	}
	return c.checkAhead(at+".date", e.Channel, *e.Date)
}

// checkAhead returns a failure if a date is not in the future, or is too far in the future. If
// channel is not empty, the failure suggests a call that finds a free posting time on that channel.
func (c *call) checkAhead(field, channel string, at time.Time) error {
	if at.After(c.now) && at.Year() <= publishing.LastYear {
		return nil
	}
	out := &failure{
		Code: argument.CodeInvalid, Field: field, Message: fmt.Sprintf("%s must be in the future, and not after the year %d. "+
			"The current time is %s.", field, publishing.LastYear, c.now.Format(time.RFC3339)),
	}
	if channel != "" {
		out.Next = &nextCall{Tool: toolFindSlot, Arguments: map[string]any{"integrationId": channel}}
	}
	return out
}

// identify sets the command's idempotency key and request hash. For replayTime, a call without a
// key is identified by its arguments and credential. In a dry run, identify only checks the key.
func (c *call) identify(cmd *publishing.CreatePosts, in createInput) error {
	if strings.ContainsFunc(in.Key, func(r rune) bool { return r < '!' || r > '~' }) {
		return &failure{
			Code: argument.CodeInvalid, Field: "idempotencyKey",
			Message: "idempotencyKey must be 1 to 255 visible ASCII characters.",
		}
	}
	if in.DryRun {
		return nil
	}
	key := in.Key
	in.Key = ""
	data, err := json.Marshal(in)
	if err != nil {
		return fault.Wrap(fault.Internal, "mcp.identify", "", err)
	}
	hash := sha256.Sum256(append([]byte("mcp\n"+credentialOf(c.p)+"\n"), data...))
	cmd.RequestHash, cmd.IdempotencyKey = hash[:], key
	if key == "" {
		cmd.IdempotencyKey, cmd.ReplayFor = "mcp-"+hex.EncodeToString(hash[:]), replayTime
	}
	return nil
}

// credentialOf returns a string that identifies the API key or the grant used for a call.
func credentialOf(p tenancy.Principal) string {
	return string(p.Via) + " " + p.Key.String() + " " + p.Agent.Grant.String()
}

// dryRun returns what a call would do. The answer includes the faults in individual posts. Any
// other error, such as reaching the plan's limit, leads to the same failure as in a real call.
func (a postTools) dryRun(ctx context.Context, c *call, in createInput, cmd publishing.CreatePosts) (answer, error) {
	results, err := a.deps.Posts.Check(ctx, c.p, cmd)
	if err != nil {
		return answer{}, createFailure(in, err)
	}
	valid := true
	for _, r := range results {
		valid = valid && len(r.Problems) == 0
	}
	if valid || cmd.Type == publishing.CreateDraft {
		if _, err := a.deps.Posts.Create(ctx, c.p, cmd); err != nil {
			return answer{}, createFailure(in, err)
		}
	}
	out := make([]createdAnswer, 0, len(results))
	for i, r := range results {
		out = append(out, createdAnswer{
			Integration: r.ID, State: stateAfter(cmd.Type), moment: momentIn(c.dateOf(in.Posts[i]), r.Zone),
			Check: &checkAnswer{
				Valid: len(r.Problems) == 0, Problems: append([]string{}, r.Problems...), Length: r.Length,
				MaximumCharacters: r.MaxLength,
			},
		})
	}
	return answer{Output: out, DryRun: true}, nil
}

// createFailure converts an error from Create or Check to a failure that names the argument to
// change. It returns an error that concerns no particular post unchanged.
func createFailure(in createInput, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	at := entryOf(in, f.Items)
	switch {
	case f.Kind == fault.Conflict && len(f.Items) > 0:
		return &failure{
			Code: string(fault.Conflict), Field: "allowDuplicate", Allowed: []any{true},
			Message: "A channel already has a post with the same text within a day, or this call contains the text twice. Look for " +
				"the other post with " + toolListPosts + ". Send allowDuplicate: true to create this post anyway.",
		}
	case at < 0:
		return err
	}
	entry, path := in.Posts[at], fmt.Sprintf("socialPost.%d", at)
	out := &failure{
		Code: string(f.Kind), Field: path, Message: listed(f.Items, func(x fault.Item) string { return x.Message }),
		Next: &nextCall{Tool: toolSchema, Arguments: map[string]any{"integrationId": entry.Channel}},
	}
	switch first := f.Items[0]; {
	case first.Kind == "":
		out.Field, out.Next = path+".integrationId", &nextCall{Tool: toolListChannels, Arguments: map[string]any{}}
	case strings.Contains(first.Message, "There is no file"):
		out.Next = &nextCall{Tool: toolUpload, Arguments: map[string]any{}}
	}
	return out
}

// entryOf returns the index of the post to which the first fault belongs, or -1 if there is none.
func entryOf(in createInput, items []fault.Item) int {
	if len(items) == 0 {
		return -1
	}
	return slices.IndexFunc(in.Posts, func(e createEntry) bool { return strings.EqualFold(e.Channel, items[0].ID) })
}

// mustAsk reports whether the call's agent may write only drafts.
func (c *call) mustAsk() bool { return c.p.Agent.Limits != nil && c.p.Agent.Limits.MustAsk }
