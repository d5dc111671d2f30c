//go:build !crash

package service

import "time"

// slack is added to a request's deadline before its claim counts as lost.
const slack = 30 * time.Second
