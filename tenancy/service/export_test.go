package service

import "time"

// SetPurgeShare changes how long one organization takes of a purge.
func (a *Accounts) SetPurgeShare(d time.Duration) { a.purgeShare = d }

// TrustClock sets whether the clock counts as injected.
func (a *Accounts) TrustClock(injected bool) { a.clockInjected = injected }
