//go:build !crash

package sender

import "time"

// slack is added to a request's deadline before its claim counts as lost.
const slack = 30 * time.Second
