package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	"crier/apps/edge/mcp/argument"
	"crier/platform/fault"
	"crier/publishing"
)

// part is one part of a post in a call's arguments.
type part struct {
	Content     string   `json:"content"`
	Type        string   `json:"contentType"`
	Attachments []string `json:"attachments"`
	AltTexts    []string `json:"altTexts"`
	Delay       int      `json:"delay"`
}

// parts returns the schema for a post's parts.
func parts() *schema {
	content := str("Plain text, or HTML with p, h1 to h3, u, strong, a, ul and li.")
	content.Blank = true
	return list("The post, followed by the other parts of its thread or by its comments.", arguments(properties{
		"content":     content,
		"contentType": oneOf("Format of content. Detected if absent.", "text", "html"),
		"attachments": list("Ids or URLs from "+toolUpload+".", str("Id or URL of a file.").AsWord()).
			Between(0, publishing.MaxAttachments),
		"altTexts": list("Descriptions of the attachments, in the same order.", blankText("Description of an attachment.")).
			Between(0, publishing.MaxAttachments),
		"delay": whole("Minutes after the previous part.", 0, publishing.MaxDelay),
	}).As("A part of the post.")).Between(1, publishing.MaxParts)
}

func blankText(description string) *schema {
	s := str(description)
	s.Blank = true
	return s
}

// settingName describes the key of a setting.
const settingName = "Name of a setting, such as topic."

// settings returns the schema for a post's settings.
func settings() *schema {
	return pairs("Settings of the platform, from "+toolSchema+".", settingName,
		"Value that the platform's settings schema allows.")
}

// partsOf converts a post's parts to the form that commands use. at is the path of the entry that
// contains the parts. partsOf returns a failure if an attachment is not on this service, because
// the file must be uploaded first.
func (a postTools) partsOf(c *call, at string, sent []part) ([]publishing.CreatePart, error) {
	out := make([]publishing.CreatePart, 0, len(sent))
	for i, p := range sent {
		one := publishing.CreatePart{Content: p.Content, Type: publishing.ContentType(p.Type), Delay: p.Delay}
		files := argument.Join(at, fmt.Sprintf("postsAndComments.%d.attachments", i))
		for j, file := range p.Attachments {
			field := fmt.Sprintf("%s.%d", files, j)
			medium, err := a.mediumOf(field, strings.TrimSpace(file))
			if err != nil {
				return nil, err
			}
			if k := c.indices.Index(files, j); k < len(p.AltTexts) {
				medium.Alt = p.AltTexts[k]
			}
			one.Media = append(one.Media, medium)
		}
		out = append(out, one)
	}
	return out, nil
}

func (a postTools) mediumOf(field, file string) (publishing.CreateMedium, error) {
	if !strings.Contains(file, "/") {
		return publishing.CreateMedium{ID: file}, nil
	}
	if _, ours := publishing.FileKey(a.deps.BaseURL, file); ours {
		return publishing.CreateMedium{URL: file}, nil
	}
	return publishing.CreateMedium{}, &failure{
		Code: argument.CodeInvalid, Field: field,
		Message: field + " is not a file on this service. Upload it first, then attach the returned id.",
		Next:    &nextCall{Tool: toolUpload, Arguments: map[string]any{"url": file}},
	}
}

// settingsOf returns settings as a JSON object, or nil if there are none. If a key is repeated, its
// last value applies.
func settingsOf(sent []pair) (json.RawMessage, error) {
	if len(sent) == 0 {
		return nil, nil
	}
	return mergeSettings(nil, sent)
}

// mergeSettings applies changes to stored settings. A null value removes a setting.
func mergeSettings(stored json.RawMessage, changes []pair) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(stored) > 0 {
		if err := json.Unmarshal(stored, &members); err != nil {
			return nil, fault.Wrap(fault.Internal, "mcp.mergeSettings", "", err)
		}
	}
	for _, p := range changes {
		members[p.Key] = p.Value
		if string(p.Value) == "null" {
			delete(members, p.Key)
		}
	}
	return json.Marshal(members)
}

// storedParts converts a stored post's parts, without changes, to the form that commands use.
func storedParts(d publishing.PostDetail) []publishing.CreatePart {
	out := make([]publishing.CreatePart, 0, len(d.Root.Parts))
	for _, p := range d.Root.Parts {
		one := publishing.CreatePart{
			ID: p.ID.String(), Content: p.Content.Text, Type: p.Content.Type(), Delay: int(p.Delay.Minutes()),
		}
		for _, m := range p.Media {
			one.Media = append(one.Media, publishing.CreateMedium{ID: m.Media.String(), Alt: m.Alt})
		}
		out = append(out, one)
	}
	return out
}
