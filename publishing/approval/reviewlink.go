package approval

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"github.com/google/uuid"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	"crier/publishing/db"
	"crier/tenancy"
)

// A request has two kinds of review links. One link is emailed to the reviewer. It works only while
// the requester is a member. If it was emailed to a member, it also stops working when that
// member's membership ends.
//
// The other links are for members to pass on. Every member except the requester sees a different
// link, which works only while that member belongs to the organization.
//
// The tokens of all of a request's links are derived from one secret. The secret is stored in
// sealed form and is not part of any token.

// reviewSecretLength is the length of a secret in characters. At least 43 base62 characters are
// needed for 256 random bits.
const reviewSecretLength = 44

// reviewLink holds a new request's sealed secret and the hash of the emailed link's token.
type reviewLink struct{ sealed, hash []byte }

func (s *Approvals) newReviewLink(org tenancy.OrgID) (out reviewLink, err error) {
	random, err := secret.Token("", reviewSecretLength)
	if err != nil {
		return out, err
	}
	out.hash = secret.HashToken(mailedToken([]byte(random)))
	out.sealed, err = s.deps.Keyring.Seal([]byte(random), reviewBound(org))
	return out, err
}

// reviewBound returns the context to which a request's sealed secret is bound.
func reviewBound(org tenancy.OrgID) string { return "review " + org.String() }

// mailedURL returns the review link to email to the reviewer.
func (s *Approvals) mailedURL(org tenancy.OrgID, a approvalstore.StoredApproval) (string, error) {
	key, err := s.deps.Keyring.Open(a.Secret, reviewBound(org))
	if err != nil {
		return "", err
	}
	return s.reviewPage(mailedToken(key)), nil
}

// sharedURL returns the review link that the principal can pass on.
func (s *Approvals) sharedURL(p tenancy.Principal, a approvalstore.StoredApproval) (string, error) {
	key, err := s.deps.Keyring.Open(a.Secret, reviewBound(p.Org))
	if err != nil {
		return "", err
	}
	return s.reviewPage(sharedToken(key, a.ID, p.Person)), nil
}

func (s *Approvals) reviewPage(token string) string { return s.cfg.BaseURL + "/review/" + token }

func proof(key, of []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(of)
	return mac.Sum(nil)
}

// mailedToken returns the token of the emailed link.
func mailedToken(key []byte) string { return hex.EncodeToString(proof(key, []byte("mailed"))) }

const idBytes = len(uuid.UUID{})

// sharedToken returns the token in the link that a member passes on. It consists of the request id,
// the member's id, and a MAC of both ids.
func sharedToken(key []byte, approval publishing.ApprovalID, sharer tenancy.PersonID) string {
	a, p := approval.UUID(), sharer.UUID()
	names := append(a[:], p[:]...)
	return base64.RawURLEncoding.EncodeToString(append(names, proof(key, names)...))
}

// parseSharedToken returns the request id and the member's id from a token made by sharedToken. ok
// is false if the token has a different form. parseSharedToken does not verify the MAC.
func parseSharedToken(token string) (approval publishing.ApprovalID, sharer tenancy.PersonID, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != 2*idBytes+sha256.Size {
		return approval, sharer, false
	}
	return id.FromUUID[publishing.ApprovalTag](uuid.UUID(raw[:idBytes])),
		id.FromUUID[tenancy.PersonTag](uuid.UUID(raw[idBytes : 2*idBytes])), true
}

// reviewed returns the request that a review link belongs to, and the guest who uses the link. The
// guest's Person is the member who passed the link on, or zero if the link was emailed.
//
// reviewed returns NotFound if the link is invalid or the member who passed it on has left. It
// returns Gone if the link was emailed and a membership that it depends on has ended.
func (s *Approvals) reviewed(
	ctx context.Context, op, token string,
) (approvalstore.StoredApproval, tenancy.Principal, error) {
	guest := tenancy.Principal{Via: tenancy.ViaGuest}
	approval, sharer, ok := parseSharedToken(token)
	if !ok {
		stored, org, err := approvalstore.Reviewed(ctx, s.db, secret.HashToken(token))
		guest.Org = org
		if errors.Is(err, approvalstore.ErrLinkEnded) {
			return stored, guest, endedLink(op)
		}
		return stored, guest, reviewFault(op, err)
	}
	stored, org, err := approvalstore.Shared(ctx, s.db, approval, sharer)
	if err != nil {
		return stored, guest, reviewFault(op, err)
	}
	guest.Org, guest.Person = org, sharer
	key, err := s.deps.Keyring.Open(stored.Secret, reviewBound(org))
	if err != nil {
		return stored, guest, pg.Fault(op, err)
	}
	if !secret.Equal(token, secret.Text(sharedToken(key, approval, sharer))) {
		return approvalstore.StoredApproval{}, guest, invalidLink(op)
	}
	return stored, guest, nil
}

func endedLink(op string) error {
	return fault.New(fault.Gone, op, "This link is no longer valid. Ask for a new one.")
}

// confirmLink returns Gone if a guest's emailed link depends on a membership that has ended. Links
// that members pass on are checked by db.Authority instead.
func confirmLink(
	ctx context.Context, tx *db.Tx, guest tenancy.Principal, approval publishing.ApprovalID,
) error {
	if guest.Via != tenancy.ViaGuest || !guest.Person.IsZero() {
		return nil
	}
	works, err := approvalstore.LinkWorks(ctx, tx, approval)
	if err == nil && !works {
		return endedLink("publishing.resolve")
	}
	return err
}

// linkWorks reports whether a request's emailed link still works.
func (s *Approvals) linkWorks(
	ctx context.Context, org tenancy.OrgID, approval publishing.ApprovalID,
) (works bool, err error) {
	err = s.db.InOrg(ctx, org, func(tx *db.Tx) error {
		works, err = approvalstore.LinkWorks(ctx, tx, approval)
		return err
	})
	return works, err
}

func reviewFault(op string, err error) error {
	if pg.IsNoRows(err) {
		return invalidLink(op)
	}
	return pg.Fault(op, err)
}

func invalidLink(op string) error { return fault.New(fault.NotFound, op, "This link is not valid.") }
