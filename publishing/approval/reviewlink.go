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

// A request has two kinds of review links. One is mailed to the reviewer. It works only while the
// requester is a member and, if it was mailed to a member, while that member still is one. Every
// other member is shown a link to pass on, which works only while that member is one.
//
// The tokens of all links of a request are derived from one secret. It is stored sealed and is not
// part of any token.

// reviewSecretLength is the length of a secret in characters: 256 random bits need 43.
const reviewSecretLength = 44

// reviewLink holds the sealed secret of a new request and the hash of its mailed link's token.
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

// reviewBound binds sealed secrets to their use.
func reviewBound(org tenancy.OrgID) string { return "review " + org.String() }

// mailedURL returns the review link to mail to the reviewer.
func (s *Approvals) mailedURL(org tenancy.OrgID, a approvalstore.StoredApproval) (string, error) {
	key, err := s.deps.Keyring.Open(a.Secret, reviewBound(org))
	if err != nil {
		return "", err
	}
	return s.reviewPage(mailedToken(key)), nil
}

// sharedURL returns the review link for a member to pass on.
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

// mailedToken returns the token of the link that is mailed.
func mailedToken(key []byte) string { return hex.EncodeToString(proof(key, []byte("mailed"))) }

const idBytes = len(uuid.UUID{})

// sharedToken returns the token of the link that a member passes on. It consists of the request,
// the member, and a proof of both.
func sharedToken(key []byte, approval publishing.ApprovalID, sharer tenancy.PersonID) string {
	a, p := approval.UUID(), sharer.UUID()
	names := append(a[:], p[:]...)
	return base64.RawURLEncoding.EncodeToString(append(names, proof(key, names)...))
}

// parseSharedToken returns the request and the member that a token names, or false for another kind
// of token. It does not check the proof.
func parseSharedToken(token string) (approval publishing.ApprovalID, sharer tenancy.PersonID, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != 2*idBytes+sha256.Size {
		return approval, sharer, false
	}
	return id.FromUUID[publishing.ApprovalTag](uuid.UUID(raw[:idBytes])),
		id.FromUUID[tenancy.PersonTag](uuid.UUID(raw[idBytes : 2*idBytes])), true
}

// reviewed returns the request of a review link and the guest who uses it. The guest's Person is
// the member who passed the link on, zero for a mailed link. It returns NotFound if the link is
// invalid or the member who passed it on has left, and Gone for a mailed link that ended with a
// membership.
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

// confirmLink returns Gone if a mailed link has ended with a membership. The links that members
// passed on are checked by db.Authority.
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

// linkWorks reports whether the mailed link of a request works.
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
