package mail

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/mails"
)

// UnsubscribeTopics returns the topics in the token of a List-Unsubscribe link, without changing
// any settings. It returns fault.NotFound if the token is invalid.
func (s *Mails) UnsubscribeTopics(token string) ([]tenancy.MailTopic, error) {
	_, topics, err := s.openUnsubscribe(token)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, "tenancy.UnsubscribeTopics", "This link is not valid.", err)
	}
	return topics, nil
}

// Unsubscribe turns off email for the topics in the token of a List-Unsubscribe link. It does not
// turn off notifications in the dashboard. It returns fault.NotFound if the token is invalid.
//
// Tokens are not stored. A token contains the person's id and the topics, encrypted for this
// purpose only.
func (s *Mails) Unsubscribe(ctx context.Context, token string) error {
	const op = "tenancy.Unsubscribe"
	person, topics, err := s.openUnsubscribe(token)
	if err != nil {
		return fault.Wrap(fault.NotFound, op, "This link is not valid.", err)
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		n, err := db.ReadNotifications(ctx, tx, person)
		if err != nil {
			return err
		}
		for _, t := range topics {
			n, _ = n.WithoutMails(t) // openUnsubscribe returns only topics that exist
		}
		return db.SetNotifications(ctx, tx, person, n)
	})
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "This link is not valid.")
	}
	return err
}

// stopLinks returns a footer link for each topic. The link turns off email about that topic.
func (s *Mails) stopLinks(person tenancy.PersonID, topics []tenancy.MailTopic) (out []mails.StopLink, err error) {
	for _, t := range topics {
		address, err := s.unsubscribeURL(person, t)
		if err != nil {
			return nil, err
		}
		out = append(out, mails.StopLink{Words: t.About(), URL: address})
	}
	return out, nil
}

// headerLink returns the List-Unsubscribe link, which turns off email about all of a message's
// topics. The List-Unsubscribe header requires https, so headerLink returns "" if the instance's
// URL does not use https. footer holds the links for the individual topics.
func (s *Mails) headerLink(
	person tenancy.PersonID, topics []tenancy.MailTopic, footer []mails.StopLink,
) (string, error) {
	if !strings.HasPrefix(s.mails.URL, "https:") {
		return "", nil
	}
	if len(footer) == 1 {
		return footer[0].URL, nil
	}
	return s.unsubscribeURL(person, topics...)
}

// unsubscribeFor binds the tokens in unsubscribe URLs to their purpose.
const unsubscribeFor = "unsubscribe"

// unsubscribeURL returns the URL at which a person can unsubscribe from the given topics.
func (s *Mails) unsubscribeURL(person tenancy.PersonID, topics ...tenancy.MailTopic) (string, error) {
	text := person.String() + " "
	for i, t := range topics {
		if i > 0 {
			text += ","
		}
		text += string(t)
	}
	sealed, err := s.keyring.Seal([]byte(text), unsubscribeFor)
	if err != nil {
		return "", err
	}
	return s.mails.URL + "/auth/unsubscribe?token=" + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// openUnsubscribe returns the person and the topics in a token made by unsubscribeURL. It returns
// an error if the token is invalid or contains an unknown topic.
func (s *Mails) openUnsubscribe(token string) (person tenancy.PersonID, topics []tenancy.MailTopic, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return person, nil, err
	}
	raw, err := s.keyring.Open(sealed, unsubscribeFor)
	if err != nil {
		return person, nil, err
	}
	name, list, _ := strings.Cut(string(raw), " ")
	person, ok := id.Parse[tenancy.PersonTag](name)
	if !ok {
		return person, nil, errors.New("the token names no person")
	}
	for topic := range strings.SplitSeq(list, ",") {
		t := tenancy.MailTopic(topic)
		if t.About() == "" {
			return person, nil, errors.New("the token names an unknown kind of mail")
		}
		topics = append(topics, t)
	}
	return person, topics, nil
}
