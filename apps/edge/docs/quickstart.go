package docs

import (
	"strings"

	"github.com/gofiber/fiber/v2"
)

// firstPost is the request body for a reader's first post, which contains only text and is
// published immediately. The date has no effect. It is in the future for readers who turn the post
// into a draft and then schedule it.
const firstPost = `{
  "type": "now",
  "date": "2035-01-01T09:00:00Z",
  "posts": [
    {
      "integration": {
        "id": "CHANNEL_ID"
      },
      "value": [
        {
          "content": "Hello from the quick start."
        }
      ]
    }
  ]
}`

// editedPost is the request body for editing a post with one part. TYPE is a placeholder for the
// request's type.
const editedPost = `{
  "type": "TYPE",
  "date": "PUBLISH_DATE",
  "posts": [
    {
      "integration": {
        "id": "CHANNEL_ID"
      },
      "value": [
        {
          "id": "POST_ID",
          "content": "Hello again."
        }
      ]
    }
  ]
}`

// quickStart returns the samples for the steps of the quick start, by operation id. The samples
// need only CRIER_API_KEY, CHANNEL_ID and POST_ID in the environment.
func quickStart(operations map[string]operation, base string) (map[string][]sample, error) {
	create := callOf(operations["create-posts"], base)
	create.Body, create.Variables = firstPost, []string{"CHANNEL_ID"}
	return samplesOfCalls(map[string]call{
		"is-connected": callWithPost(operations["is-connected"], base), "create-posts": create,
		"list-channels": callWithPost(operations["list-channels"], base),
		"get-post":      callWithPost(operations["get-post"], base),
	})
}

// editing returns the samples for the page about editing, moving and canceling a post, by step
// name. The samples need PUBLISH_DATE in addition to the quick start's variables.
func editing(operations map[string]operation, base string) (map[string][]sample, error) {
	edit := func(kind string) call {
		c := callOf(operations["create-posts"], base)
		c.Variables = []string{"CHANNEL_ID", "POST_ID", "PUBLISH_DATE"}
		c.Body = strings.Replace(editedPost, "TYPE", kind, 1)
		return c
	}
	draft := callWithPost(operations["change-status"], base)
	draft.Body = "{\n  \"status\": \"draft\"\n}"
	draft.Headers = []header{{Name: fiber.HeaderContentType, Value: fiber.MIMEApplicationJSON}}
	return samplesOfCalls(map[string]call{
		"get-post": callWithPost(operations["get-post"], base), "edit": edit("update"),
		"move": edit("schedule"), "unschedule": draft,
		"delete-post": callWithPost(operations["delete-post"], base),
	})
}

// callWithPost returns a call to an operation, without a body. In the path, POST_ID stands for the
// id.
func callWithPost(o operation, base string) call {
	c := call{Method: o.Method, URL: base + o.Path}
	if strings.Contains(o.Path, "{id}") {
		c.URL, c.Variables = base+strings.Replace(o.Path, "{id}", "POST_ID", 1), []string{"POST_ID"}
	}
	return c
}

func samplesOfCalls(calls map[string]call) (map[string][]sample, error) {
	out := map[string][]sample{}
	for name, c := range calls {
		var err error
		if out[name], err = samplesOfCall(name, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}
