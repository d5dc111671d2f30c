//go:build crash

package sender

import "time"

// slack is added to a request's deadline before its claim counts as lost; short, so that a test can outlast a claim.
const slack = 3 * time.Second
