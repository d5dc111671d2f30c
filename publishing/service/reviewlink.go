package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"github.com/google/uuid"

	"crier/platform/id"
	"crier/platform/secret"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// A request has two kinds of review links. One is mailed to its reviewer: it holds the token of the request and works
// until the request expires. The other is shown to members, who pass it on: it names its member, and works only as long
// as that is one.

// reviewTokenLength is in characters: 256 random bits need 43.
const reviewTokenLength = 44

// newReviewToken returns the token of a review link, and the token as it is stored.
func (c core) newReviewToken(org tenancy.OrgID) (token string, sealed []byte, err error) {
	token, err = secret.Token("", reviewTokenLength)
	if err != nil {
		return "", nil, err
	}
	sealed, err = c.deps.Keyring.Seal([]byte(token), reviewBound(org))
	return token, sealed, err
}

// reviewBound binds sealed tokens to their use.
func reviewBound(org tenancy.OrgID) string { return "review " + org.String() }

// reviewURL returns the address of the review page of a request, for its reviewer.
func (c core) reviewURL(org tenancy.OrgID, a publishingstore.StoredApproval) (string, error) {
	token, err := c.deps.Keyring.Open(a.Token, reviewBound(org))
	if err != nil {
		return "", err
	}
	return c.reviewPage(string(token)), nil
}

// sharedURL returns the address of the review page of a request, for a member who passes it on.
func (c core) sharedURL(p tenancy.Principal, a publishingstore.StoredApproval) (string, error) {
	token, err := c.deps.Keyring.Open(a.Token, reviewBound(p.Org))
	if err != nil {
		return "", err
	}
	return c.reviewPage(shareToken(token, a.ID, p.Person)), nil
}

func (c core) reviewPage(token string) string { return c.cfg.BaseURL + "/review/" + token }

const idBytes = len(uuid.UUID{})

// shareToken returns the token of a link that a member passes on: the request, the member, and a proof of both that is
// made with the token of the request.
func shareToken(token []byte, approval publishing.ApprovalID, sharer tenancy.PersonID) string {
	a, p := approval.UUID(), sharer.UUID()
	names := append(a[:], p[:]...)
	return base64.RawURLEncoding.EncodeToString(append(names, shareProof(token, names)...))
}

func shareProof(token, names []byte) []byte {
	mac := hmac.New(sha256.New, token)
	mac.Write(names)
	return mac.Sum(nil)
}

// parseShareToken returns the request and the member that a token names, and false for one of another kind. It does not
// check the proof.
func parseShareToken(token string) (approval publishing.ApprovalID, sharer tenancy.PersonID, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != 2*idBytes+sha256.Size {
		return approval, sharer, false
	}
	return id.FromUUID[publishing.ApprovalTag](uuid.UUID(raw[:idBytes])),
		id.FromUUID[tenancy.PersonTag](uuid.UUID(raw[idBytes : 2*idBytes])), true
}

// reviewed returns the request of a review link, and the guest who has the link: the member who passed it on is its
// Person. It returns NotFound for a link that is not valid, or whose member is none any more.
func (s *Approvals) reviewed(ctx context.Context, op, token string) (publishingstore.StoredApproval, tenancy.Principal, error) {
	guest := tenancy.Principal{Via: tenancy.ViaGuest}
	approval, sharer, ok := parseShareToken(token)
	if !ok {
		stored, org, err := s.store.Reviewed(ctx, secret.HashToken(token))
		guest.Org = org
		return stored, guest, reviewFault(op, err)
	}
	stored, org, err := s.store.Shared(ctx, approval, sharer)
	if err != nil {
		return stored, guest, reviewFault(op, err)
	}
	guest.Org, guest.Person = org, sharer
	own, err := s.deps.Keyring.Open(stored.Token, reviewBound(org))
	if err != nil {
		return stored, guest, internal(op, err)
	}
	if !secret.Equal(token, secret.Text(shareToken(own, approval, sharer))) {
		return publishingstore.StoredApproval{}, guest, invalidLink(op)
	}
	return stored, guest, nil
}
