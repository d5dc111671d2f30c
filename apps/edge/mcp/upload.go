package mcp

import (
	"context"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
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
		name: toolUpload, olderName: "uploadFromUrlTool", title: "Upload a file from a URL", writes: true, open: true,
		description: "Download a picture (png, jpg, gif) or a video (mp4) from a public URL and store it. Attach the " +
			"returned id to a post. Wait for the result before you create the post.",
		input: arguments(properties{
			"url": {Type: argument.TypeString, MaxLength: maxURL, Description: "http or https URL that anyone can open."},
		}, "url"),
		output: answers(object("The file.", properties{
			"id": str("File id, for attachments."), "path": str("Same as url."), "url": str("URL of the file."),
			"name": str("Name of the file."),
		}, "id", "path", "url"), nil),
		run: runner(a.runUpload),
	}
}

func (a otherTools) runUpload(ctx context.Context, c *call, in uploadInput) (answer, error) {
	m, err := a.deps.Media.UploadFromURL(ctx, c.p, in.URL)
	if err != nil {
		return answer{}, withField(err, "url")
	}
	out := record.Base(a.deps.BaseURL).Medium(m)
	return answer{Output: map[string]any{"id": out.ID, "path": out.Path, "url": out.URL, "name": out.Name}}, nil
}
