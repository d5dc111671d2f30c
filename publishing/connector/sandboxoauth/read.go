package sandboxoauth

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"crier/publishing/connector"
)

// Tools returns the sandbox's only tool.
func (c *Connector) Tools() []connector.Tool {
	return []connector.Tool{{
		Name: "topics", Description: "Topics that a post can have, searched by part of their name.",
		Data: []connector.ToolField{
			{Key: "query", Type: "string", Description: "Part of the name; returns all topics if omitted."},
		},
	}}
}

// Call runs the tool "topics". It returns the IDs and names of topics.
func (c *Connector) Call(
	ctx context.Context, s *connector.Session, name string, data map[string]any,
) (json.RawMessage, error) {
	if name != "topics" {
		return nil, &connector.Error{Kind: connector.KindContent, Public: "There is no such tool."}
	}
	query, _ := data["query"].(string) // it is a string or absent
	cl, err := c.open(s)
	if err != nil {
		return nil, err
	}
	var out struct {
		Topics json.RawMessage `json:"topics"`
	}
	err = cl.get(ctx, "/api/topics?query="+url.QueryEscape(query), &out)
	return out.Topics, err
}

// Recent returns at most 100 of the page's posts, newest first.
func (c *Connector) Recent(ctx context.Context, s *connector.Session, limit int) ([]connector.RemoteItem, error) {
	cl, err := c.open(s)
	if err != nil {
		return nil, err
	}
	var list struct {
		Posts []struct {
			ID  string `json:"id"`
			URL string `json:"url"`
		} `json:"posts"`
	}
	if err := cl.get(ctx, "/api/posts?account=me&limit="+strconv.Itoa(min(limit, 100)), &list); err != nil {
		return nil, err
	}
	var out []connector.RemoteItem
	for _, p := range list.Posts {
		out = append(out, connector.RemoteItem{ID: p.ID, URL: p.URL})
	}
	return out, nil
}

// Channel returns statistics on the page's followers, impressions and likes.
func (c *Connector) Channel(
	ctx context.Context, s *connector.Session, since, until time.Time,
) ([]connector.Series, error) {
	return c.insights(ctx, s, "/api/insights", since, until)
}

// Post returns a post's impressions and likes.
func (c *Connector) Post(
	ctx context.Context, s *connector.Session, ref connector.Ref, since, until time.Time,
) ([]connector.Series, error) {
	return c.insights(ctx, s, "/api/posts/"+url.PathEscape(ref.ID)+"/insights", since, until)
}

func (c *Connector) insights(
	ctx context.Context, s *connector.Session, path string, since, until time.Time,
) ([]connector.Series, error) {
	cl, err := c.open(s)
	if err != nil {
		return nil, err
	}
	var list struct {
		Series []struct {
			Name   string `json:"name"`
			Level  bool   `json:"level"`
			Points []struct {
				Day   string  `json:"day"`
				Value float64 `json:"value"`
			} `json:"points"`
		} `json:"series"`
	}
	q := url.Values{"since": {since.UTC().Format(time.DateOnly)}, "until": {until.UTC().Format(time.DateOnly)}}
	if err := cl.get(ctx, path+"?"+q.Encode(), &list); err != nil {
		return nil, err
	}
	var out []connector.Series
	for _, v := range list.Series {
		series := connector.Series{Label: v.Name, Level: v.Level}
		for _, p := range v.Points {
			day, err := time.Parse(time.DateOnly, p.Day)
			if err != nil {
				return nil, unusable(err)
			}
			series.Points = append(series.Points, connector.Point{Day: day, Value: p.Value})
		}
		out = append(out, series)
	}
	return out, nil
}

// open returns a client with a session's access token.
func (c *Connector) open(s *connector.Session) (client, error) {
	cred, err := parseCredential(s.Credential)
	if err != nil {
		return client{}, err
	}
	cl := c.client(s.HTTP, cred.Service)
	cl.access = cred.AccessToken
	return cl, nil
}
