package conformance

import (
	"encoding/json"
	"strings"

	"crier/publishing/connector"
)

const shortest = 8 // bytes; what is shorter stands in too many words to be looked for

// secretsOf gathers what nobody may see: the values of password fields, and the strings of the credential that are neither
// addresses nor told elsewhere in the form or the account.
func secretsOf(d connector.Descriptor, fields map[string]string, done connector.Connected) []string {
	var secrets []string
	open := []string{done.Account.ID, done.Account.Name, done.Account.Profile, done.Account.Picture}
	for _, f := range d.Fields {
		if value := fields[f.Key]; f.Type != "password" {
			open = append(open, value)
		} else if len(value) >= shortest {
			secrets = append(secrets, value)
		}
	}
	known := strings.Join(open, "\n")
	var doc any
	if json.Unmarshal(done.Credential, &doc) != nil {
		return secrets // Connect's own case reports it
	}
	for _, s := range leaves(doc) {
		if len(s) >= shortest && !strings.Contains(s, "://") && !strings.Contains(known, s) {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

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
