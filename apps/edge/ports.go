package edge

import (
	"context"

	"crier/actors/org"
	"crier/apps/edge/appapi"
	"crier/apps/edge/publicv1"
	"crier/platform/blob"
	"crier/publishing"
	"crier/tenancy"
)

// Channels is what the edge asks of publishing about channels.
type Channels interface {
	publicv1.Channels
	appapi.Channels
}

// Media is what the edge asks of publishing about files.
type Media interface {
	publicv1.Media
	// Open finds a file by the two parts of its public path; NotFound when either is wrong.
	Open(ctx context.Context, key, file string) (publishing.Medium, blob.File, error)
}

// Accounts is what the edge asks of tenancy.
type Accounts interface {
	// Authenticate finds whose API key this is; anything else is Unauthenticated.
	Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error)
	appapi.Accounts
}

// Limiter is the organization's actor, wherever it lives.
type Limiter interface {
	// Admit counts one request of the organization. It never blocks longer than its budget and never fails: without the
	// actor a window of this node decides.
	Admit(ctx context.Context, organization tenancy.OrgID) org.Admission
}
