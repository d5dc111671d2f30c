package bluesky

import (
	"encoding/json"
	"slices"

	"golang.org/x/text/language"

	"crier/publishing/connector"
)

const maxLangs = 3

// settingsSchema is the JSON Schema for a post's settings.
const settingsSchema = `{"type":"object","properties":{"langs":{"type":["array","null"],"maxItems":3,` +
	`"items":{"type":"string"},"description":"The languages of the text as BCP 47 tags, such as de or pt-BR."}},` +
	`"additionalProperties":true}`

// langsOf returns the languages in a post's settings, in canonical form and without duplicates. If
// the settings specify no languages, langsOf returns nil. It returns KindContent if Validate would
// reject the settings.
func langsOf(settings json.RawMessage) ([]string, error) {
	var in struct {
		Langs json.RawMessage `json:"langs"`
	}
	if len(settings) == 0 || json.Unmarshal(settings, &in) != nil || len(in.Langs) == 0 {
		return nil, nil
	}
	var tags []string
	if err := json.Unmarshal(in.Langs, &tags); err != nil {
		return nil, badLangs("The langs setting must be a list of language tags.", err)
	}
	var out []string
	for _, tag := range tags {
		parsed, err := language.Parse(tag)
		if err != nil || parsed == language.Und {
			return nil, badLangs("The langs setting contains "+tag+", which is not a language tag such as de or pt-BR.", err)
		}
		if !slices.Contains(out, parsed.String()) {
			out = append(out, parsed.String())
		}
	}
	if len(out) > maxLangs {
		return nil, badLangs("The langs setting may contain at most 3 languages.", nil)
	}
	return out, nil
}

func badLangs(public string, err error) error {
	return &connector.Error{Kind: connector.KindContent, Public: public, Err: err}
}
