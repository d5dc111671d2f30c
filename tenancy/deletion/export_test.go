package deletion

import "time"

// SetPurgeShare changes how long one organization takes of a purge.
func (s *Deletions) SetPurgeShare(d time.Duration) { s.purgeShare = d }
