package publishing

import (
	"crier/platform/fault"
)

// ReleaseMissing is the release id of a post that the platform has published without saying under which id. Clients
// know this word.
const ReleaseMissing = "missing"

// maxRelease is the longest release id, in bytes.
const maxRelease = 1024

// RemoteItem is a published item on a platform.
type RemoteItem struct {
	ID  string
	URL string
}

// CheckRelease returns an Invalid fault for a release id that cannot be stored.
func CheckRelease(release string) error {
	if release != "" && len(release) <= maxRelease && Storable(release) && release != ReleaseMissing {
		return nil
	}
	return &fault.Error{
		Kind: fault.Invalid, Op: "publishing.CheckRelease", Message: "The release id is not valid.",
		Fields: []fault.Field{{
			Name: "releaseId", Message: "must be the platform's id of the post, 1 to 1024 bytes and not the word missing",
		}},
	}
}

// ReleaseSettable returns whether people may set the release id of a post: it is not going to be published, and no id is
// known. A post with an id is published, so it is queued with republish only.
func ReleaseSettable(state State, release *string) bool {
	switch state {
	case StateQueue, StateWaiting, StatePublishing, StateUnknown:
		return false
	}
	return release == nil || *release == "" || *release == ReleaseMissing
}

// TriggerTool runs a tool of the platform of a channel.
type TriggerTool struct {
	Channel string
	Name    string
	// Data has strings, numbers (float64) and booleans; members that the tool does not declare are ignored.
	Data map[string]any
}
