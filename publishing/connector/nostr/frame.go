package nostr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// Limits on the arrays that are parsed. They keep the memory used for a message proportional to its
// size. NIP-01 messages have at most four elements. Our own notes have at most 77 tags, each with
// at most six values.
const (
	maxElements = 8
	maxTags     = 2000
	maxValues   = 100 // in one tag
)

var errShape = errors.New("not a message of the protocol")

// labels are the labels of messages that are parsed in full. For any other message, such as NOTICE,
// only the label is read.
var labels = []string{"OK", "EVENT", "EOSE", "CLOSED", "AUTH"}

// frame parses a message, which is an array of a known label and at least one other element. It
// returns the label and the other elements. If r does not hold exactly one such message, frame
// returns errShape or a JSON error. It may leave part of r unread.
func frame(r io.Reader) (label string, rest []json.RawMessage, err error) {
	dec := json.NewDecoder(r)
	first := true
	err = array(dec, maxElements, func() error {
		if first {
			first = false
			if err := dec.Decode(&label); err != nil || !slices.Contains(labels, label) {
				return errShape
			}
			return nil
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		rest = append(rest, raw)
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	if _, err := dec.Token(); err != io.EOF || len(rest) == 0 {
		return "", nil, errShape
	}
	return label, rest, nil
}

// array parses an array, calling element to decode each element. It returns errShape if the value
// is not an array, or if the number of elements exceeds most.
func array(dec *json.Decoder, most int, element func() error) error {
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return errors.Join(errShape, err)
	}
	for n := 0; dec.More(); n++ {
		if n == most {
			return errShape
		}
		if err := element(); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

type tags [][]string

// UnmarshalJSON implements json.Unmarshaler. It returns errShape if there are more than maxTags
// tags, or if a tag has more than maxValues values. The limits exist because an empty element takes
// more space in memory than in JSON.
func (t *tags) UnmarshalJSON(raw []byte) error {
	*t = nil
	if string(raw) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	all := tags{}
	err := array(dec, maxTags, func() error {
		tag := []string{}
		err := array(dec, maxValues, func() error {
			var value string
			err := dec.Decode(&value)
			tag = append(tag, value)
			return err
		})
		all = append(all, tag)
		return err
	})
	if err != nil {
		return err
	}
	*t = all
	return nil
}
