package edge

import (
	"fmt"
	"strconv"
	"time"

	"crier/apps/edge/docs"
	"crier/publishing"
)

// InstanceLimits are limits of other packages that the documentation names.
type InstanceLimits struct {
	// Requests is the number of requests a minute of one organization.
	Requests           int
	Channels, Webhooks int
	// Image, Video and Storage are in bytes. Storage is 0 without a limit.
	Image, Video, Storage int64
	// IdempotencyKeys is how long a key is kept, 0 for ever.
	IdempotencyKeys time.Duration
}

// documentedLimits returns the limits that clients of the public API meet, as they are configured.
func (s *Server) documentedLimits() []docs.LimitGroup {
	return []docs.LimitGroup{
		{Title: "Requests", Limits: s.requestLimits()},
		{Title: "Sizes", Limits: s.sizeLimits()},
		{Title: "One request to create posts", Limits: postLimits()},
		{Title: "Lists", Limits: listLimits()},
		{Title: "An organization", Limits: s.organizationLimits()},
		{Title: "Webhooks", Limits: webhookLimits()},
	}
}

func (s *Server) requestLimits() []docs.Limit {
	return []docs.Limit{
		{Subject: "Requests of an organization", Value: count(s.deps.Limits.Requests), Note: "a minute, of all its keys together."},
		{Subject: "Creates and edits at the same time", Value: count(maxWrites), Note: "in one process; others wait " + placeTimeout.String() + "."},
		{Subject: "Reads at the same time", Value: count(maxReads), Note: "lists of posts " + count(maxLists) + "."},
		{Subject: "Uploads at the same time", Value: count(maxUploads), Note: "from URLs " + count(maxFetches) + "."},
		{Subject: "Time for a request", Value: s.cfg.Timeout.String(), Note: "with its body; for an upload " + s.cfg.UploadTimeout.String() + "."},
	}
}

func (s *Server) sizeLimits() []docs.Limit {
	return []docs.Limit{
		{Subject: "Body of POST /posts", Value: size(s.cfg.PostLimit)},
		{Subject: "Other JSON bodies", Value: size(s.cfg.BodyLimit)},
		{Subject: "Image", Value: size(s.deps.Limits.Image)},
		{Subject: "Video", Value: size(s.deps.Limits.Video)},
		{Subject: "Headers of a request", Value: size(headerLimit)},
		{Subject: "Idempotency-Key", Value: size(publishing.MaxIdempotencyKey), Note: keyNote(s.deps.Limits.IdempotencyKeys)},
	}
}

func keyNote(kept time.Duration) string {
	if kept == 0 {
		return "It is kept for ever."
	}
	return "It is kept for " + days(kept) + " after its posts have ended."
}

func postLimits() []docs.Limit {
	return []docs.Limit{
		{Subject: "Channels", Value: count(publishing.MaxEntries)},
		{Subject: "Parts of one channel", Value: count(publishing.MaxParts), Note: "of all channels " + count(publishing.MaxAllParts) + "."},
		{Subject: "Text of one part", Value: count(publishing.MaxText), Note: "characters; platforms allow less. All texts: " + size(publishing.MaxAllTexts) + "."},
		{Subject: "Files of one part", Value: count(publishing.MaxAttachments), Note: "of all parts " + count(publishing.MaxAllImages) + "."},
		{Subject: "Alternative text", Value: count(publishing.MaxAlt), Note: "characters."},
		{Subject: "Tags", Value: count(publishing.MaxPostTags)},
		{Subject: "Settings of one channel", Value: size(publishing.MaxSettings)},
		{Subject: "Delay of a part", Value: days(publishing.MaxDelay * time.Minute)},
		{Subject: "Repetition", Value: days(publishing.MaxInterval * 24 * time.Hour), Note: "between two posts, and " + count(publishing.MaxOccurrences) + " posts."},
	}
}

func listLimits() []docs.Limit {
	return []docs.Limit{
		{Subject: "Page of posts", Value: count(publishing.MaxPageLimit)},
		{Subject: "Dates of a list of posts", Value: days(publishing.MaxRange), Note: "and " + count(publishing.MaxListed) + " posts."},
		{Subject: "Days of a report", Value: count(publishing.MaxReportDays)},
		{Subject: "Page of deliveries", Value: count(publishing.MaxDeliveryPage)},
		{Subject: "Page of requests for approval", Value: count(publishing.MaxApprovalPage)},
	}
}

func (s *Server) organizationLimits() []docs.Limit {
	storage := "no limit"
	if s.deps.Limits.Storage > 0 {
		storage = size(s.deps.Limits.Storage)
	}
	return []docs.Limit{
		{Subject: "Channels", Value: count(s.deps.Limits.Channels), Note: "or what the plan allows, if that is less."},
		{Subject: "Webhooks", Value: count(s.deps.Limits.Webhooks), Note: "or what the plan allows, if that is less."},
		{Subject: "Tags", Value: count(publishing.MaxTags)},
		{Subject: "Posting times of a channel", Value: count(publishing.MaxQueueTimes)},
		{Subject: "Uploaded files", Value: storage},
	}
}

func webhookLimits() []docs.Limit {
	return []docs.Limit{
		{Subject: "Body", Value: size(publishing.MaxWebhookBody)},
		{Subject: "Time to answer", Value: publishing.WebhookTimeout.String()},
		{Subject: "Attempts", Value: count(publishing.MaxWebhookAttempts), Note: "of one delivery."},
		{Subject: "Waiting deliveries", Value: count(publishing.MaxWebhookPending), Note: "of one webhook; then the oldest are given up."},
		{Subject: "Both secrets sign", Value: publishing.WebhookOverlap.String(), Note: "after a rotation."},
	}
}

// count returns a number with commas between thousands.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// size returns a number of bytes in the largest unit of which it is a whole number.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n >= 1<<10 && n%(1<<10) == 0 && i < len(units)-1 {
		n, i = n>>10, i+1
	}
	return count(int(n)) + " " + units[i]
}

func days(d time.Duration) string { return fmt.Sprintf("%d days", int(d.Hours()/24)) }
