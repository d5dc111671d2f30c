package docs

import (
	"strconv"
	"time"

	postapi "crier/apps/edge/api/post"
	"crier/publishing"
)

// InstanceLimits holds limits that are enforced by other packages and shown in the documentation.
type InstanceLimits struct {
	// Requests is the number of requests that one organization may make per minute.
	Requests           int
	Channels, Webhooks int
	// Image, Video and Storage are in bytes. Storage is 0 if there is no limit.
	Image, Video, Storage int64
	// IdempotencyKeys is how long a key is kept. 0 means forever.
	IdempotencyKeys time.Duration
	// Deliveries is how long a webhook delivery is kept. 0 means forever.
	Deliveries time.Duration
}

// Limits holds the limits that the documentation shows, except for limits that are constants in
// other packages.
type Limits struct {
	Instance InstanceLimits
	// Writes, Lists, Reads, Statistics, Uploads and Fetches limit how many requests from one
	// organization can run concurrently in one process.
	Writes, Lists, Reads, Statistics, Uploads, Fetches int
	// Wait is how long a request waits if too many requests are already running.
	Wait                   time.Duration
	Timeout, UploadTimeout time.Duration
	// The maximum sizes of bodies and headers are in bytes.
	PostBody, Body, UploadBody, Headers int64
}

// LimitGroup is a table on the limits page.
type LimitGroup struct {
	Title  string
	Limits []Limit
}

// Limit is a row of a table on the limits page. Note may be empty.
type Limit struct{ Subject, Value, Note string }

// groups returns the limits that apply to clients of the public API, grouped as on the limits page.
func (l Limits) groups() []LimitGroup {
	return []LimitGroup{
		{Title: "Requests", Limits: l.requests()},
		{Title: "Sizes", Limits: l.sizes()},
		{Title: "One request to create posts", Limits: postLimits()},
		{Title: "Lists", Limits: listLimits()},
		{Title: "An organization", Limits: l.Instance.organization()},
		{Title: "Webhooks", Limits: l.Instance.webhooks()},
	}
}

func (l Limits) requests() []Limit {
	return []Limit{
		limitOf("Requests per organization", count(l.Instance.Requests), "per minute, across all keys."),
		limitOf("Concurrent creates and edits", count(l.Writes), atOnce),
		limitOf("Concurrent post lists and reports", count(l.Lists), atOnce),
		limitOf("Other concurrent reads", count(l.Reads), atOnce),
		limitOf("Concurrent reads of statistics", count(l.Statistics), atOnce),
		limitOf("Concurrent uploads", count(l.Uploads), atOnce),
		limitOf("Concurrent uploads from URLs", count(l.Fetches), atOnce),
		limitOf("Maximum wait for a concurrent request", inWords(l.Wait), "after which the request returns 429."),
		limitOf("Time to receive a request", inWords(l.Timeout), "including its body."),
		limitOf("Time to receive an upload", inWords(l.UploadTimeout), "including uploads from a URL."),
	}
}

// atOnce is the note for limits on concurrent requests.
const atOnce = "per organization and process; further requests wait."

func (l Limits) sizes() []Limit {
	return []Limit{
		limitOf("JSON body with posts", size(l.PostBody), "POST /posts and POST /posts/check."),
		limitOf("Other JSON bodies", size(l.Body), "All other routes with a JSON body."),
		limitOf("Upload body", size(l.UploadBody), "POST /upload, including the form encoding."),
		limitOf("Image", size(l.Instance.Image), "POST /upload and POST /upload-from-url."),
		limitOf("Video", size(l.Instance.Video), "POST /upload and POST /upload-from-url."),
		limitOf("Request headers", size(l.Headers), ""),
		limitOf("Idempotency-Key", size(publishing.MaxIdempotencyKey), keyNote(l.Instance.IdempotencyKeys)),
	}
}

// keyNote returns a sentence that says how long an idempotency key is kept.
func keyNote(kept time.Duration) string {
	if kept == 0 {
		return "A key is kept forever."
	}
	return "A key is kept for " + inWords(kept) + " after its posts are published, fail or are deleted."
}

func postLimits() []Limit {
	return []Limit{
		limitOf("Channels", count(publishing.MaxEntries), ""),
		limitOf("Parts per channel", count(publishing.MaxParts), ""),
		limitOf("Parts across all channels", count(publishing.MaxAllParts), ""),
		limitOf("Text of one part", count(publishing.MaxText), "characters; platforms may allow fewer."),
		limitOf("All texts together", size(publishing.MaxAllTexts), ""),
		limitOf("Files per part", count(publishing.MaxAttachments), ""),
		limitOf("Files across all parts", count(publishing.MaxAllImages), ""),
		limitOf("Alternative text", count(publishing.MaxAlt), "characters."),
		limitOf("Tags", count(publishing.MaxPostTags), ""),
		limitOf("Settings per channel", size(publishing.MaxSettings), ""),
		limitOf("Delay of a part", inWords(publishing.MaxDelay*time.Minute), ""),
		limitOf("Interval of a repeated post", inWords(publishing.MaxInterval*24*time.Hour), "between occurrences."),
		limitOf("Occurrences of a repeated post", count(publishing.MaxOccurrences), ""),
	}
}

func listLimits() []Limit {
	return []Limit{
		limitOf("Posts per page", count(publishing.MaxPageLimit), ""),
		limitOf("Date range of a post list", inWords(publishing.MaxRange), "from the first date to the last."),
		limitOf("Posts in a date range", count(publishing.MaxListed), ""),
		limitOf("Days in a report", count(publishing.MaxReportDays), ""),
		limitOf("Texts in a post list", size(publishing.MaxListedBytes), "for texts, and the same amount for "+
			"settings."),
		limitOf("JSON body of a post list", size(postapi.MaxListAnswer), ""),
		limitOf("Files per page", count(publishing.MediaPerPage), ""),
		limitOf("Notifications per page", count(publishing.NotificationsPerPage), ""),
		limitOf("Deliveries per page", count(publishing.MaxDeliveryPage), ""),
		limitOf("Approval requests per page", count(publishing.MaxApprovalPage), ""),
	}
}

func (l InstanceLimits) organization() []Limit {
	storage := "no limit"
	if l.Storage > 0 {
		storage = size(l.Storage)
	}
	return []Limit{
		limitOf("Channels", count(l.Channels), "or fewer, if the plan allows fewer."),
		limitOf("Webhooks", count(l.Webhooks), "or fewer, if the plan allows fewer."),
		limitOf("Tags", count(publishing.MaxTags), ""),
		limitOf("Posting times per channel", count(publishing.MaxQueueTimes), ""),
		limitOf("Uploaded files", storage, ""),
	}
}

func (l InstanceLimits) webhooks() []Limit {
	kept := "forever"
	if l.Deliveries > 0 {
		kept = inWords(l.Deliveries)
	}
	return []Limit{
		limitOf("Body", size(publishing.MaxWebhookBody), ""),
		limitOf("Time to respond", inWords(publishing.WebhookTimeout), ""),
		limitOf("Attempts", count(publishing.MaxWebhookAttempts), "per delivery."),
		limitOf("Pending deliveries", count(publishing.MaxWebhookPending),
			"per webhook; beyond that, the oldest are abandoned."),
		limitOf("Stored deliveries", count(publishing.MaxWebhookLog), "per webhook; beyond that, the oldest are deleted."),
		limitOf("Retention of a delivery", kept, "after its event."),
		limitOf("Overlap of two secrets", inWords(publishing.WebhookOverlap), "after a rotation."),
	}
}

func limitOf(subject, value, note string) Limit {
	return Limit{Subject: subject, Value: value, Note: note}
}

// count returns a number with commas as thousands separators. Example: 10,000
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// size returns a number of bytes, expressed in the largest unit that divides it evenly. Example: 24
// MiB
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n >= 1<<10 && n%(1<<10) == 0 && i < len(units)-1 {
		n, i = n>>10, i+1
	}
	return count(int(n)) + " " + units[i]
}

// inWords returns a duration in words. It uses the largest unit that divides the duration evenly
// and fits into it at least twice. Example: 24 hours
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
