package conformance

import (
	"encoding/json"
	"strings"

	"crier/publishing/connector"
)

const minSecret = 8 // bytes; a shorter secret could occur in ordinary text

// secretsOf returns the values that a connector must not reveal in its results or errors: the
// values of password fields and the strings in the credential. It leaves out short values. From the
// credential, it also leaves out URLs and any string that occurs in the account or in a field of
// another type.
func secretsOf(d connector.Descriptor, fields map[string]string, done connector.Connected) []string {
	var secrets []string
	open := []string{done.Account.ID, done.Account.Name, done.Account.Profile, done.Account.Picture}
	for _, f := range d.Fields {
		if value := fields[f.Key]; f.Type != "password" {
			open = append(open, value)
		} else if len(value) >= minSecret {
			secrets = append(secrets, value)
		}
	}
	known := strings.Join(open, "\n")
	var doc any
	if json.Unmarshal(done.Credential, &doc) != nil {
		// the connect case reports it
		return secrets
	}
	for _, s := range leaves(doc) {
		if len(s) >= minSecret && !strings.Contains(s, "://") && !strings.Contains(known, s) {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

// leaves returns the string values of a decoded JSON document, without the member names.
func leaves(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, leaves(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, e := range v {
			out = append(out, leaves(e)...)
		}
		return out
	}
	return nil
}
