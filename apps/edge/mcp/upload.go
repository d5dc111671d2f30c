package mcp

import (
	"context"
	"net/http"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
)

// otherTools are the tools for files, posting times, statistics and approvals.
type otherTools struct{ deps Deps }

func (a otherTools) all() []*tool {
	return []*tool{
		a.uploadFromURL(), a.findSlot(), a.channelAnalytics(), a.overview(), a.requestApproval(), a.approvalStatus(),
	}
}

type uploadInput struct {
	URL string `json:"url"`
}

// maxURL is the maximum length of a URL, in bytes.
const maxURL = 4096

func (a otherTools) uploadFromURL() *tool {
	return &tool{
		name: toolUpload, olderName: "uploadFromUrlTool", title: "Upload a file", writes: true, open: true,
		description: "Store a picture (png, jpg, gif) or a video (mp4), and attach the returned id to a post. With url, the " +
			"service downloads the file from that public URL; wait for the result before you create the post. Without " +
			"url, for a local file, the result is uploadUrl, which takes one file without a credential: run " +
			"curl -F file=@cat.png UPLOAD_URL, whose JSON response has the id. Without access to that response, call this " +
			"tool with url set to uploadUrl.",
		input: arguments(properties{
			"url": {Type: argument.TypeString, MaxLength: maxURL, Description: "http or https URL that anyone can open, or an " +
				"uploadUrl that a file was sent to. Leave it out to upload a local file."},
		}),
		output: answers(object("The file or, without url, where to upload it.", properties{
			"id": str("File id, for attachments."), "path": str("Same as url."), "url": str("URL of the file."),
			"name":      str("Name of the file."),
			"uploadUrl": str("Address for one file. Keep it secret: whoever has it can upload."),
			"expiresAt": date("When uploadUrl ends, UTC."), "method": str("HTTP method. PUT works too."),
			"field": str("Field of a multipart form. The bytes alone, as the body, work too."),
			"curl":  str("Command that uploads. Replace FILE with the path of the file."),
		}), nil),
		run: runner(a.runUpload),
	}
}

func (a otherTools) runUpload(ctx context.Context, c *call, in uploadInput) (answer, error) {
	if in.URL == "" {
		return a.createAddress(ctx, c)
	}
	m, err := a.deps.Media.UploadFromURL(ctx, c.p, in.URL)
	if err != nil {
		return answer{}, withField(err, "url")
	}
	out := record.Base(a.deps.BaseURL).Medium(m)
	return answer{Output: map[string]any{"id": out.ID, "path": out.Path, "url": out.URL, "name": out.Name}}, nil
}

// addressAnswer says how to upload a local file.
type addressAnswer struct {
	UploadURL string `json:"uploadUrl"`
	ExpiresAt string `json:"expiresAt"`
	Method    string `json:"method"`
	Field     string `json:"field"`
	Curl      string `json:"curl"`
}

func (a otherTools) createAddress(ctx context.Context, c *call) (answer, error) {
	made, err := a.deps.Media.CreateAddress(ctx, c.p, request.From(ctx).Credential)
	if err != nil {
		return answer{}, err
	}
	return answer{Output: addressAnswer{
		UploadURL: made.URL, ExpiresAt: record.FormatTime(made.ExpiresAt), Method: http.MethodPost, Field: "file",
		Curl: "curl -F file=@FILE " + made.URL,
	}}, nil
}
