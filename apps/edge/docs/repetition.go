package docs

// repetition describes what happens if a request is repeated with the same content.
type repetition struct {
	// Operation is the id of an operation of the public API.
	Operation string
	Effect    Effect
	// Text contains anything else the reader must know. It is "" if Effect says everything.
	Text string
}

// Effect is what the second of two identical requests does.
type Effect string

const (
	// EffectSame means that the second request changes nothing and gets the same response as the
	// first.
	EffectSame Effect = "same"
	// EffectRefused means that the second request is rejected and changes nothing.
	EffectRefused Effect = "refused"
	// EffectAgain means that the second request takes effect again.
	EffectAgain Effect = "again"
)

// repetitions lists every operation of the public API that changes something. GET requests that are
// not listed change nothing. A test in tests/contract checks this by making the calls.
var repetitions = []repetition{
	{Operation: "change-post-settings", Effect: EffectSame},
	{
		Operation: "change-status", Effect: EffectSame,
		Text: "This applies only to requests without republish, and only until the post is published. After that, " +
			"the request returns 409.",
	},
	{Operation: "check-posts", Effect: EffectSame, Text: "The request changes nothing."},
	{Operation: "set-queue-plan", Effect: EffectSame},
	{Operation: "update-tag", Effect: EffectSame},
	{
		Operation: "update-webhook", Effect: EffectSame,
		Text: "This applies only to requests without secret. If you send the same secret twice, it replaces itself, " +
			"and deliveries are no longer signed with the secret before it.",
	},

	{Operation: "create-tag", Effect: EffectRefused, Text: "409: a tag already has this name. Check the list of tags."},
	{Operation: "delete-approval", Effect: EffectRefused, Text: "409: the request has already ended."},
	{Operation: "delete-channel", Effect: EffectRefused, Text: "404: the channel no longer exists."},
	{Operation: "delete-group", Effect: EffectRefused, Text: "404: the posts no longer exist."},
	{Operation: "delete-media", Effect: EffectRefused, Text: "404: the file no longer exists."},
	{Operation: "delete-post", Effect: EffectRefused, Text: "404: the post no longer exists."},
	{Operation: "delete-tag", Effect: EffectRefused, Text: "404: the tag no longer exists."},
	{Operation: "delete-webhook", Effect: EffectRefused, Text: "404: the webhook no longer exists."},
	{Operation: "request-approval", Effect: EffectRefused, Text: "409: the first approval request is still pending."},
	{Operation: "set-release", Effect: EffectRefused, Text: "409: the post already has a release id."},

	{
		Operation: "change-status", Effect: EffectAgain,
		Text: "With republish: true, each request publishes the post again, where people can see it.",
	},
	{
		Operation: "create-posts", Effect: EffectAgain,
		Text: "Without an Idempotency-Key, each request creates new posts or, with republish: true, publishes the " +
			"edited post again.",
	},
	{
		Operation: "authorize-connector", Effect: EffectAgain,
		Text: "The second request starts a new connection attempt, and the first attempt expires.",
	},
	{
		Operation: "create-webhook", Effect: EffectAgain,
		Text: "The second request creates another webhook with its own secret. Check the list of webhooks first.",
	},
	{
		Operation: "find-any-slot", Effect: EffectAgain,
		Text: "The second request holds a different time. The first time is free again after two minutes.",
	},
	{
		Operation: "find-slot", Effect: EffectAgain,
		Text: "The second request holds a different time. The first time is free again after two minutes.",
	},
	{
		Operation: "get-social-url", Effect: EffectAgain,
		Text: "The second request starts a new connection attempt, and the first attempt expires.",
	},
	{
		Operation: "replay-delivery", Effect: EffectAgain,
		Text: "Once the previous replay has ended, the second request sends the delivery again, with the same " +
			"webhook-id.",
	},
	{
		Operation: "rotate-webhook-secret", Effect: EffectAgain,
		Text: "The second request replaces the secret again. If you did not receive the new secret, send the request " +
			"again: deliveries are then signed with the last two secrets.",
	},
	{Operation: "test-webhook", Effect: EffectAgain, Text: "The second request sends another test event."},
	{
		Operation: "upload", Effect: EffectAgain,
		Text: "The second request creates another file, with its own name and URL. Identical bytes are stored and " +
			"counted only once.",
	},
	{
		Operation: "upload-from-url", Effect: EffectAgain,
		Text: "The second request creates another file, with its own name and URL. Identical bytes are stored and " +
			"counted only once.",
	},
	{Operation: "trigger-tool", Effect: EffectAgain, Text: "The effect depends on the tool and the platform."},
}

// repeated is a repetition in the form that the page shows.
type repeated struct {
	repetition
	Operation operation
	Root      string
}

// Repeated returns the repetitions with the given effect. It returns an error if an operation is
// not in the document.
func (v view) Repeated(e Effect) (out []repeated, err error) {
	for _, r := range repetitions {
		if r.Effect != e {
			continue
		}
		op, err := v.Operation(r.Operation)
		if err != nil {
			return nil, err
		}
		out = append(out, repeated{repetition: r, Operation: op, Root: v.Root})
	}
	return out, nil
}
