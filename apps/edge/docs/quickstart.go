package docs

import "strings"

// firstPost is the body of the first post of a reader: text alone, published at once. Its date has no effect, and lies
// ahead for who makes it a draft and schedules that.
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

// quickStart returns the samples of the steps of the quick start by the id of their operation. They need CRIER_API_KEY,
// CHANNEL_ID and POST_ID in the environment, and nothing that the organization does not have.
func quickStart(operations map[string]operation, base string) (map[string][]sample, error) {
	at := func(id string) call { return call{Method: operations[id].Method, URL: base + operations[id].Path} }
	list, create, get := at("list-channels"), callOf(operations["create-posts"], base), at("get-post")
	create.Body, create.Variable = firstPost, "CHANNEL_ID"
	get.Variable = "POST_ID"
	get.URL = strings.Replace(get.URL, "{id}", get.Variable, 1)
	out := map[string][]sample{}
	for id, c := range map[string]call{
		"is-connected": at("is-connected"), "list-channels": list, "create-posts": create, "get-post": get,
	} {
		var err error
		if out[id], err = samplesOfCall(id, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}
