// Package key provides the endpoints for API keys.
package key

import (
	"context"

	"crier/apps/edge/admission"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/clock"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Accounts Keys
	Gate     *admission.Gate
	Clock    clock.Clock
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// Keys manages API keys. A full key is returned only once, when it is created.
type Keys interface {
	// Keys returns the keys that are still valid, newest first, along with the email address of
	// each key's creator.
	Keys(ctx context.Context, p tenancy.Principal) ([]tenancy.KeyOf, error)
	// CreateKey requires a proof unless the person has signed in within the last ten minutes. It
	// returns the full key and the key's record. If the proof is missing or wrong, it returns
	// Invalid.
	CreateKey(ctx context.Context, p tenancy.Principal, n tenancy.NewKey) (string, tenancy.APIKey, error)
	RenameKey(ctx context.Context, p tenancy.Principal, key, name string) (tenancy.APIKey, error)
	DeleteKey(ctx context.Context, p tenancy.Principal, key string) error
	// RotateKey replaces key with a new key that has the same name and expiry. If key is "", it
	// replaces the oldest key, or creates the first key if there is none. The old key keeps working
	// for overlap hours. RotateKey requires the same sign-in or proof as CreateKey.
	//
	// RotateKey returns Conflict if the key has already been replaced. It also returns Conflict if
	// key is "" and the oldest key was created by a rotation within the last ten minutes.
	RotateKey(ctx context.Context, p tenancy.Principal, key string, overlap int, proof tenancy.Proof) (
		tenancy.Rotation, error)
}

// KeyRecord is an API key without its secret.
type KeyRecord struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Prefix     string      `json:"prefix" doc:"First characters of the key, to identify it." example:"crier_ab12…"`
	CreatedAt  string      `json:"createdAt" format:"date-time"`
	LastUsedAt *string     `json:"lastUsedAt" nullable:"true" format:"date-time" doc:"When the key was last used, to the minute; null if it was never used."`
	ExpiresAt  *string     `json:"expiresAt" nullable:"true" format:"date-time" doc:"When the key expires; null if it does not expire."`
	Overlap    *string     `json:"overlapUntil" nullable:"true" format:"date-time" doc:"For a replaced key, the latest time at which it stops working; null if the key has not been replaced."`
	CreatedBy  *KeyCreator `json:"createdBy" doc:"The person who created the key; null if their account no longer exists."`
}

// KeyCreator is the person who created a key.
type KeyCreator struct {
	_     struct{} `nullable:"true"`
	ID    string   `json:"id"`
	Email string   `json:"email" doc:"Email address of the person; empty if they are no longer a member."`
}

type keysOutput struct{ Body []KeyRecord }

// Keys returns the endpoint that lists the organization's API keys.
func (a *API) Keys() route.Endpoint {
	return route.JSON(route.Describe("API keys", "List the organization's API keys"), a.keys)
}

func (a *API) keys(ctx context.Context, _ *struct{}) (*keysOutput, error) {
	list, err := a.deps.Accounts.Keys(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &keysOutput{Body: make([]KeyRecord, 0, len(list))}
	for _, k := range list {
		record := KeyRecord{
			ID: k.ID.String(), Name: k.Name, Prefix: record.Mask(k.Prefix), CreatedAt: record.FormatTime(k.CreatedAt),
			LastUsedAt: record.OptionalTime(k.UsedAt), ExpiresAt: record.OptionalTime(k.ExpiresAt),
			Overlap: record.OptionalTime(k.OverlapUntil),
		}
		if !k.CreatedBy.IsZero() {
			record.CreatedBy = &KeyCreator{ID: k.CreatedBy.String(), Email: k.CreatedByEmail}
		}
		out.Body = append(out.Body, record)
	}
	return out, nil
}

// CreateKeyRequest is the body of POST /settings/api-keys.
type CreateKeyRequest struct {
	Name      string  `json:"name" minLength:"1" maxLength:"128" doc:"1 to 64 characters." example:"Newsletter"`
	ExpiresAt *string `json:"expiresAt,omitempty" nullable:"true" doc:"ISO 8601. If absent, the key never expires."`
	record.ProofRequest
}

type createKeyInput struct{ Body CreateKeyRequest }

// NewKeyResponse is the response to POST /settings/api-keys.
type NewKeyResponse struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Key       string  `json:"key" doc:"The full key. It is returned only in this response."`
	Prefix    string  `json:"prefix"`
	CreatedAt string  `json:"createdAt" format:"date-time"`
	ExpiresAt *string `json:"expiresAt" nullable:"true" format:"date-time"`
}

type createKeyOutput struct{ Body NewKeyResponse }

// CreateKey returns the endpoint that creates an API key.
func (a *API) CreateKey() route.Endpoint {
	return route.JSON(route.Described(route.Created("API keys", "Create an API key", 400, 402, 409, 413),
		"If you signed in more than 10 minutes ago, send your password and, if you have a second factor, a code."),
		a.createKey)
}

func (a *API) createKey(ctx context.Context, in *createKeyInput) (*createKeyOutput, error) {
	n := tenancy.NewKey{Name: in.Body.Name, Proof: in.Body.Proof()}
	if in.Body.ExpiresAt != nil && *in.Body.ExpiresAt != "" {
		at, ok := record.ParseDate(*in.Body.ExpiresAt)
		rule := record.DateRule(*in.Body.ExpiresAt)
		if ok && !at.After(a.deps.Clock.Now()) {
			rule = "must be a date in the future"
		}
		var faults tenancy.Inputs
		faults.Check(rule == "", "expiresAt", rule)
		if err := faults.Err("key.createKey"); err != nil {
			return nil, err
		}
		n.ExpiresAt = &at
	}
	var secret string
	var k tenancy.APIKey
	err := a.deps.Gate.ProveIfSent(ctx, in.Body.ProofRequest, func(ctx context.Context, p tenancy.Principal) (err error) {
		secret, k, err = a.deps.Accounts.CreateKey(ctx, p, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &createKeyOutput{Body: NewKeyResponse{
		ID: k.ID.String(), Name: k.Name, Key: secret, Prefix: record.Mask(k.Prefix),
		CreatedAt: record.FormatTime(k.CreatedAt), ExpiresAt: record.OptionalTime(k.ExpiresAt),
	}}, nil
}

// KeyNameRequest is the body of PUT /settings/api-keys/{id}.
type KeyNameRequest struct {
	Name string `json:"name" minLength:"1" maxLength:"128" doc:"1 to 64 characters."`
}

type renameKeyInput struct {
	ID   string `path:"id"`
	Body KeyNameRequest
}

// KeyName is a key's id and name.
type KeyName struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type renameKeyOutput struct{ Body KeyName }

// RenameKey returns the endpoint that renames an API key.
func (a *API) RenameKey() route.Endpoint {
	return route.JSON(route.Describe("API keys", "Rename an API key", 400, 404, 413), a.renameKey)
}

func (a *API) renameKey(ctx context.Context, in *renameKeyInput) (*renameKeyOutput, error) {
	k, err := a.deps.Accounts.RenameKey(ctx, request.Principal(ctx), in.ID, in.Body.Name)
	if err != nil {
		return nil, err
	}
	return &renameKeyOutput{Body: KeyName{ID: k.ID.String(), Name: k.Name}}, nil
}

// DeleteKey returns the endpoint that revokes an API key.
func (a *API) DeleteKey() route.Endpoint {
	return route.JSON(route.Describe("API keys", "Revoke an API key", 404), a.deleteKey)
}

func (a *API) deleteKey(ctx context.Context, in *record.PathID) (*record.IDOutput, error) {
	if err := a.deps.Accounts.DeleteKey(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return &record.IDOutput{Body: record.IDResponse(*in)}, nil
}

// RotateKeyRequest is the body of POST /user/api-key/rotate. The body may be absent.
type RotateKeyRequest struct {
	ID      string `json:"id,omitempty" maxLength:"64" doc:"Id of the key. If absent, the oldest key that has not been replaced is used."`
	Overlap int    `json:"overlapHours,omitempty" minimum:"0" maximum:"72" doc:"Number of hours for which both keys work."`
	record.ProofRequest
}

type rotateKeyInput struct{ Body *RotateKeyRequest }

// RotatedKeyResponse is the response to POST /user/api-key/rotate.
type RotatedKeyResponse struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	APIKey string `json:"apiKey" doc:"The full key. It is returned only in this response."`
	// The new key keeps the old key's expiry time.
	ExpiresAt     *string `json:"expiresAt" nullable:"true" format:"date-time" doc:"When the new key expires; null if it does not expire."`
	Previous      *string `json:"previousKeyId" nullable:"true" doc:"Id of the replaced key; null if no key was replaced."`
	PreviousUntil *string `json:"previousKeyUntil" nullable:"true" format:"date-time" doc:"When the replaced key stops working; null if no key was replaced."`
}

type rotateKeyOutput struct{ Body RotatedKeyResponse }

// RotateKey returns the endpoint that replaces an API key with a new one.
func (a *API) RotateKey() route.Endpoint {
	return route.JSON(route.Described(route.Created("API keys", "Replace an API key", 400, 404, 409, 413),
		"The old key stops working immediately or, with overlapHours, after that many hours. Until then, replacing "+
			"it again returns 409. Without an id, a key that was created by a rotation in the last 10 minutes is not "+
			"replaced, so a repeated request does not invalidate the key that was just returned. If the organization "+
			"has no key, its first key is created. If you signed in more than 10 minutes ago, send your password and, "+
			"if you have a second factor, a code."),
		a.rotateKey)
}

func (a *API) rotateKey(ctx context.Context, in *rotateKeyInput) (*rotateKeyOutput, error) {
	var b RotateKeyRequest
	if in.Body != nil {
		b = *in.Body
	}
	var r tenancy.Rotation
	err := a.deps.Gate.ProveIfSent(ctx, b.ProofRequest, func(ctx context.Context, p tenancy.Principal) (err error) {
		r, err = a.deps.Accounts.RotateKey(ctx, p, b.ID, b.Overlap, b.Proof())
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &rotateKeyOutput{Body: RotatedKeyResponse{
		ID: r.New.ID.String(), Name: r.New.Name, APIKey: r.Full, ExpiresAt: record.OptionalTime(r.New.ExpiresAt),
	}}
	if !r.Old.ID.IsZero() {
		old := r.Old.ID.String()
		out.Body.Previous, out.Body.PreviousUntil = &old, record.OptionalTime(r.Old.Ends())
	}
	return out, nil
}
