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
		description: "Store a picture (png, jpg, gif) or a video (mp4). Attach the returned id to a post. With url, the " +
			"service downloads the file from that public URL; wait for the result before you create the post. For a local " +
			"file, omit url. The result is then uploadUrl, which accepts one file without a credential. Run " +
			"curl -F file=@cat.png UPLOAD_URL; the JSON response has the id. If you cannot see that response, call this " +
			"tool again with url set to uploadUrl.",
		input: arguments(properties{
			"url": {Type: argument.TypeString, MaxLength: maxURL, Description: "http or https URL that anyone can open, or an " +
				"uploadUrl that a file was sent to. Omit it to upload a local file."},
		}),
		output: answers(object("The file or, without url, where to upload it.", properties{
			"id": str("File id, for attachments."), "path": str("Same as url."), "url": str("URL of the file."),
			"name":      str("Name of the file."),
			"uploadUrl": str("Address for one file. Keep it secret: anyone who has it can upload."),
			"expiresAt": date("When uploadUrl expires, UTC."), "method": str("HTTP method. PUT works too."),
			"field": str("Name of the file's field in a multipart form. Sending only the bytes as the body works too."),
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
