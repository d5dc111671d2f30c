package edge

import (
	"strconv"
	"time"

	postapi "crier/apps/edge/api/post"
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
	// Deliveries is how long a delivery of a webhook is kept, 0 for ever.
	Deliveries time.Duration
}

// documentedLimits returns the limits that clients of the public API meet, as they are configured.
func (s *Server) documentedLimits() []docs.LimitGroup {
	return []docs.LimitGroup{
		{Title: "Requests", Limits: s.requestLimits()},
		{Title: "Sizes", Limits: s.sizeLimits()},
		{Title: "One request to create posts", Limits: postLimits()},
		{Title: "Lists", Limits: listLimits()},
		{Title: "An organization", Limits: s.organizationLimits()},
		{Title: "Webhooks", Limits: s.webhookLimits()},
	}
}

func (s *Server) requestLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Requests of an organization", count(s.deps.Limits.Requests), "a minute, of all its keys together."),
		limitOf("Creates and edits at the same time", count(maxWrites), atOnce),
		limitOf("Lists of posts and reports at the same time", count(maxLists), atOnce),
		limitOf("Other reads at the same time", count(maxReads), atOnce),
		limitOf("Reads of statistics at the same time", count(maxStatistics), atOnce),
		limitOf("Uploads at the same time", count(maxUploads), atOnce),
		limitOf("Uploads from URLs at the same time", count(maxFetches), atOnce),
		limitOf("Wait for one of these places", inWords(placeTimeout), "then the answer is 429."),
		limitOf("Time for a request", inWords(s.cfg.Timeout), "with its body."),
		limitOf("Time for an upload", inWords(s.cfg.UploadTimeout), "also for one from a URL."),
	}
}

// atOnce is the note of limits of requests at the same time.
const atOnce = "of one organization in one process; others wait."

func (s *Server) sizeLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Body of posts", size(s.cfg.PostLimit), "POST /posts and POST /posts/check."),
		limitOf("Other JSON bodies", size(s.cfg.BodyLimit), "All other routes with a JSON body."),
		limitOf("Body of an upload", size(s.cfg.UploadLimit), "POST /upload, with the frame of the form."),
		limitOf("Image", size(s.deps.Limits.Image), "POST /upload and POST /upload-from-url."),
		limitOf("Video", size(s.deps.Limits.Video), "POST /upload and POST /upload-from-url."),
		limitOf("Headers of a request", size(headerLimit), ""),
		limitOf("Idempotency-Key", size(publishing.MaxIdempotencyKey), keyNote(s.deps.Limits.IdempotencyKeys)),
	}
}

// keyNote returns a sentence with how long an idempotency key is kept.
func keyNote(kept time.Duration) string {
	if kept == 0 {
		return "A key is kept for ever."
	}
	return "A key is kept for " + inWords(kept) + " after its posts have been published, have failed or were deleted."
}

func postLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Channels", count(publishing.MaxEntries), ""),
		limitOf("Parts of one channel", count(publishing.MaxParts), ""),
		limitOf("Parts of all channels", count(publishing.MaxAllParts), ""),
		limitOf("Text of one part", count(publishing.MaxText), "characters; platforms allow less."),
		limitOf("All texts", size(publishing.MaxAllTexts), ""),
		limitOf("Files of one part", count(publishing.MaxAttachments), ""),
		limitOf("Files of all parts", count(publishing.MaxAllImages), ""),
		limitOf("Alternative text", count(publishing.MaxAlt), "characters."),
		limitOf("Tags", count(publishing.MaxPostTags), ""),
		limitOf("Settings of one channel", size(publishing.MaxSettings), ""),
		limitOf("Delay of a part", inWords(publishing.MaxDelay*time.Minute), ""),
		limitOf("Repetition", inWords(publishing.MaxInterval*24*time.Hour), "between two posts."),
		limitOf("Posts of a repetition", count(publishing.MaxOccurrences), ""),
	}
}

func listLimits() []docs.Limit {
	return []docs.Limit{
		limitOf("Page of posts", count(publishing.MaxPageLimit), ""),
		limitOf("Dates of a list of posts", inWords(publishing.MaxRange), "from the first to the last."),
		limitOf("Posts of such a list", count(publishing.MaxListed), ""),
		limitOf("Days of a report", count(publishing.MaxReportDays), ""),
		limitOf("Texts of the posts of a list", size(publishing.MaxListedBytes), "and the same of settings."),
		limitOf("JSON of a list of posts", size(postapi.MaxListAnswer), ""),
		limitOf("Page of files", count(publishing.MediaPerPage), ""),
		limitOf("Page of notifications", count(publishing.NotificationsPerPage), ""),
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

func (s *Server) webhookLimits() []docs.Limit {
	kept := "for ever"
	if s.deps.Limits.Deliveries > 0 {
		kept = inWords(s.deps.Limits.Deliveries)
	}
	return []docs.Limit{
		limitOf("Body", size(publishing.MaxWebhookBody), ""),
		limitOf("Time to answer", inWords(publishing.WebhookTimeout), ""),
		limitOf("Attempts", count(publishing.MaxWebhookAttempts), "of one delivery."),
		limitOf("Waiting deliveries", count(publishing.MaxWebhookPending),
			"of one webhook; then the oldest are given up."),
		limitOf("Deliveries that are kept", count(publishing.MaxWebhookLog), "of one webhook; then the oldest are deleted."),
		limitOf("A delivery is kept", kept, "after its event."),
		limitOf("Both secrets sign", inWords(publishing.WebhookOverlap), "after a rotation."),
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

// inWords returns a duration in the largest unit of which it is a whole number, at least two, such as "24 hours".
func inWords(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{
		{length: 24 * time.Hour, name: "days"}, {length: time.Hour, name: "hours"},
		{length: time.Minute, name: "minutes"}, {length: time.Second, name: "seconds"},
	} {
		if d >= 2*unit.length && d%unit.length == 0 {
			return count(int(d/unit.length)) + " " + unit.name
		}
	}
	return count(int(d.Milliseconds())) + " milliseconds"
}
