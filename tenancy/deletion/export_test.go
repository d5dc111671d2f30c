package deletion

import "time"

// SetPurgeShare sets how much time of a purge one organization may take.
func (s *Deletions) SetPurgeShare(d time.Duration) { s.purgeShare = d }
