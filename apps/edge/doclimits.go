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
		limitOf("Requests of an organization", count(s.deps.Limits.Requests), "a minute, of all its keys together."),
		limitOf("Creates and edits at the same time", count(maxWrites),
			"in one process; others wait "+placeTimeout.String()+"."),
		limitOf("Reads at the same time", count(maxReads), "lists of posts "+count(maxLists)+"."),
		limitOf("Uploads at the same time", count(maxUploads), "from URLs "+count(maxFetches)+"."),
		limitOf("Time for a request", s.cfg.Timeout.String(),
			"with its body; for an upload "+s.cfg.UploadTimeout.String()+"."),
	}
}

func (s *Server) sizeLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Body of POST /posts", size(s.cfg.PostLimit), ""),
		limitOf("Other JSON bodies", size(s.cfg.BodyLimit), ""),
		limitOf("Image", size(s.deps.Limits.Image), ""),
		limitOf("Video", size(s.deps.Limits.Video), ""),
		limitOf("Headers of a request", size(headerLimit), ""),
		limitOf("Idempotency-Key", size(publishing.MaxIdempotencyKey), keyNote(s.deps.Limits.IdempotencyKeys)),
	}
}

// keyNote says how long an idempotency key is kept.
func keyNote(kept time.Duration) string {
	if kept == 0 {
		return "A key is kept for ever."
	}
	return "A key is kept for " + days(kept) + " after its posts have been published, have failed or were deleted."
}

func postLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Channels", count(publishing.MaxEntries), ""),
		limitOf("Parts of one channel", count(publishing.MaxParts),
			"of all channels "+count(publishing.MaxAllParts)+"."),
		limitOf("Text of one part", count(publishing.MaxText),
			"characters; platforms allow less. All texts: "+size(publishing.MaxAllTexts)+"."),
		limitOf("Files of one part", count(publishing.MaxAttachments),
			"of all parts "+count(publishing.MaxAllImages)+"."),
		limitOf("Alternative text", count(publishing.MaxAlt), "characters."),
		limitOf("Tags", count(publishing.MaxPostTags), ""),
		limitOf("Settings of one channel", size(publishing.MaxSettings), ""),
		limitOf("Delay of a part", days(publishing.MaxDelay*time.Minute), ""),
		limitOf("Repetition", days(publishing.MaxInterval*24*time.Hour),
			"between two posts, and "+count(publishing.MaxOccurrences)+" posts."),
	}
}

func listLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Page of posts", count(publishing.MaxPageLimit), ""),
		limitOf("Dates of a list of posts", days(publishing.MaxRange),
			"and "+count(publishing.MaxListed)+" posts."),
		limitOf("Days of a report", count(publishing.MaxReportDays), ""),
		limitOf("Page of deliveries", count(publishing.MaxDeliveryPage), ""),
		limitOf("Page of requests for approval", count(publishing.MaxApprovalPage), ""),
	}
}

func (s *Server) organizationLimits() []docs.Limit {
	storage := "no limit"
	if s.deps.Limits.Storage > 0 {
		storage = size(s.deps.Limits.Storage)
	}
	return []docs.Limit{
		limitOf("Channels", count(s.deps.Limits.Channels), "or what the plan allows, if that is less."),
		limitOf("Webhooks", count(s.deps.Limits.Webhooks), "or what the plan allows, if that is less."),
		limitOf("Tags", count(publishing.MaxTags), ""),
		limitOf("Posting times of a channel", count(publishing.MaxQueueTimes), ""),
		limitOf("Uploaded files", storage, ""),
	}
}

func webhookLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Body", size(publishing.MaxWebhookBody), ""),
		limitOf("Time to answer", publishing.WebhookTimeout.String(), ""),
		limitOf("Attempts", count(publishing.MaxWebhookAttempts), "of one delivery."),
		limitOf("Waiting deliveries", count(publishing.MaxWebhookPending),
			"of one webhook; then the oldest are given up."),
		limitOf("Both secrets sign", publishing.WebhookOverlap.String(), "after a rotation."),
	}
}

func limitOf(subject, value, note string) docs.Limit {
	return docs.Limit{Subject: subject, Value: value, Note: note}
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
