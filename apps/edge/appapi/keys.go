package appapi

import (
	"context"

	"crier/apps/edge/publicv1"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

const tagKeys = "API keys"

// KeyRecord is an API key without its secret.
type KeyRecord struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Prefix     string      `json:"prefix" doc:"Beginning of the key, to recognize it." example:"crier_ab12…"`
	CreatedAt  string      `json:"createdAt" format:"date-time"`
	LastUsedAt *string     `json:"lastUsedAt" nullable:"true" format:"date-time" doc:"To the minute; null if never used."`
	ExpiresAt  *string     `json:"expiresAt" nullable:"true" format:"date-time" doc:"Null: it does not expire."`
	CreatedBy  *KeyCreator `json:"createdBy" doc:"Null when that account is gone."`
}

// KeyCreator is the person who has made a key.
type KeyCreator struct {
	_     struct{} `nullable:"true"`
	ID    string   `json:"id"`
	Email string   `json:"email"`
}

// mask returns the beginning of a key with a mark that it is cut.
func mask(prefix string) string { return prefix + "…" }

type keysOutput struct{ Body []KeyRecord }

// Keys returns the endpoint that lists the API keys of the organization.
func (a *API) Keys() route.Endpoint {
	return route.JSON(describe(tagKeys, "List the API keys of the organization"), a.keys)
}

func (a *API) keys(ctx context.Context, _ *struct{}) (*keysOutput, error) {
	list, err := a.deps.Accounts.Keys(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &keysOutput{Body: make([]KeyRecord, 0, len(list))}
	for _, k := range list {
		record := KeyRecord{
			ID: k.ID.String(), Name: k.Name, Prefix: mask(k.Prefix), CreatedAt: publicv1.FormatTime(k.CreatedAt),
			LastUsedAt: optionalTime(k.UsedAt), ExpiresAt: optionalTime(k.ExpiresAt),
		}
		if k.CreatedByEmail != "" {
			record.CreatedBy = &KeyCreator{ID: k.CreatedBy.String(), Email: k.CreatedByEmail}
		}
		out.Body = append(out.Body, record)
	}
	return out, nil
}

// CreateKeyRequest is the body of POST /settings/api-keys.
type CreateKeyRequest struct {
	Name      string  `json:"name" minLength:"1" maxLength:"128" doc:"1 to 64 characters." example:"Newsletter"`
	ExpiresAt *string `json:"expiresAt,omitempty" nullable:"true" doc:"ISO 8601; absent: never."`
}

type createKeyInput struct{ Body CreateKeyRequest }

// NewKeyAnswer is a new key.
type NewKeyAnswer struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Key       string  `json:"key" doc:"The whole key. It is shown only here."`
	Prefix    string  `json:"prefix"`
	CreatedAt string  `json:"createdAt" format:"date-time"`
	ExpiresAt *string `json:"expiresAt" nullable:"true" format:"date-time"`
}

type createKeyOutput struct{ Body NewKeyAnswer }

// CreateKey returns the endpoint that makes an API key.
func (a *API) CreateKey() route.Endpoint {
	return route.JSON(created(tagKeys, "Create an API key", 400, 402, 409, 413), a.createKey)
}

func (a *API) createKey(ctx context.Context, in *createKeyInput) (*createKeyOutput, error) {
	n := tenancy.NewKey{Name: in.Body.Name}
	if in.Body.ExpiresAt != nil && *in.Body.ExpiresAt != "" {
		at, ok := publicv1.ParseDate(*in.Body.ExpiresAt)
		var faults tenancy.Inputs
		faults.Check(ok && at.After(a.deps.Clock.Now()), "expiresAt", "must be a date of ISO 8601 in the future")
		if err := faults.Err("appapi.createKey"); err != nil {
			return nil, err
		}
		n.ExpiresAt = &at
	}
	secret, k, err := a.deps.Accounts.CreateKey(ctx, request.Principal(ctx), n)
	if err != nil {
		return nil, err
	}
	return &createKeyOutput{Body: NewKeyAnswer{
		ID: k.ID.String(), Name: k.Name, Key: secret, Prefix: mask(k.Prefix),
		CreatedAt: publicv1.FormatTime(k.CreatedAt), ExpiresAt: optionalTime(k.ExpiresAt),
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

// KeyName names a key.
type KeyName struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type renameKeyOutput struct{ Body KeyName }

// RenameKey returns the endpoint that renames an API key.
func (a *API) RenameKey() route.Endpoint {
	return route.JSON(describe(tagKeys, "Rename an API key", 400, 404, 413), a.renameKey)
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
	return route.JSON(describe(tagKeys, "Revoke an API key", 404), a.deleteKey)
}

func (a *API) deleteKey(ctx context.Context, in *pathID) (*idOutput, error) {
	if err := a.deps.Accounts.DeleteKey(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return &idOutput{Body: IDAnswer(*in)}, nil
}

// RotateKeyRequest is the body of POST /user/api-key/rotate, which may be absent.
type RotateKeyRequest struct {
	ID      string `json:"id,omitempty" maxLength:"64" doc:"The key; without it the oldest one."`
	Overlap int    `json:"overlapHours,omitempty" minimum:"0" maximum:"72" doc:"How long both keys work."`
}

type rotateKeyInput struct{ Body *RotateKeyRequest }

// RotatedKeyAnswer is the key that replaces another one.
type RotatedKeyAnswer struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	APIKey string `json:"apiKey" doc:"The whole key. It is shown only here."`
}

type rotateKeyOutput struct{ Body RotatedKeyAnswer }

// RotateKey returns the endpoint that replaces an API key by a new one.
func (a *API) RotateKey() route.Endpoint {
	return route.JSON(described(created(tagKeys, "Replace an API key", 400, 404, 409, 413),
		"The old key stops working at once, or after overlapHours. Without any key the first one is made."),
		a.rotateKey)
}

func (a *API) rotateKey(ctx context.Context, in *rotateKeyInput) (*rotateKeyOutput, error) {
	var b RotateKeyRequest
	if in.Body != nil {
		b = *in.Body
	}
	secret, k, err := a.deps.Accounts.RotateKey(ctx, request.Principal(ctx), b.ID, b.Overlap)
	if err != nil {
		return nil, err
	}
	return &rotateKeyOutput{Body: RotatedKeyAnswer{ID: k.ID.String(), Name: k.Name, APIKey: secret}}, nil
}
