package service

import "time"

// SetWait changes how long a request waits for a platform when there are figures that it can return.
func (s *Analytics) SetWait(d time.Duration) { s.wait = d }
