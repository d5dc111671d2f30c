package sandbox

import (
	"hash/fnv"
	"net/http"
	"strings"
	"time"
)

const maxInsightDays = 366

type seriesView struct {
	Name string `json:"name"`
	// Level is true if each value is a level at the end of a day, and false if it is a count over
	// the day.
	Level  bool        `json:"level"`
	Points []pointView `json:"points"`
}

type pointView struct {
	Day   string `json:"day"`
	Value int    `json:"value"`
}

// accountInsights returns invented statistics for an account. They depend only on the account's id
// and the day.
func (p *Platform) accountInsights(c *call) (answer, error) {
	return p.insights(c, c.account.ID.String(), []seriesView{
		{Name: "followers", Level: true}, {Name: "impressions"}, {Name: "likes"},
	})
}

// postInsights returns invented statistics for one of the account's posts.
func (p *Platform) postInsights(c *call) (answer, error) {
	p.mu.Lock()
	e := p.state.ownPost(c.account, c.r.PathValue("id"))
	p.mu.Unlock()
	if e == nil || e.deleted {
		return answer{}, refuse(http.StatusNotFound, "post_not_found", "This account has no such post.")
	}
	return p.insights(c, e.id.String(), []seriesView{{Name: "impressions"}, {Name: "likes"}})
}

func (p *Platform) insights(c *call, subject string, series []seriesView) (answer, error) {
	q, err := query(c.r, "since", "until")
	if err != nil {
		return answer{}, err
	}
	since, errSince := time.Parse(time.DateOnly, q.Get("since"))
	until, errUntil := time.Parse(time.DateOnly, q.Get("until"))
	days := int(until.Sub(since)/(24*time.Hour)) + 1
	if errSince != nil || errUntil != nil || days < 1 || days > maxInsightDays {
		return answer{}, refuse(422, "bad_range", "since and until must be days like 2006-01-02, at most a year apart.")
	}
	today := p.opts.Clock.Now()
	for i := range series {
		series[i].Points = []pointView{}
		for day := since; !day.After(until) && !day.After(today); day = day.AddDate(0, 0, 1) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(subject + series[i].Name + day.Format(time.DateOnly))) // never fails
			value := int(h.Sum32() % 1000)
			if series[i].Level {
				value = 1000 + int(day.Unix()/86400-19000)
			}
			series[i].Points = append(series[i].Points, pointView{Day: day.Format(time.DateOnly), Value: value})
		}
	}
	return answer{status: http.StatusOK, body: map[string]any{"series": series}}, nil
}

type topicView struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// topics are the topics that GET /api/topics searches.
var topics = []topicView{
	{ID: "cats", Name: "Cats"}, {ID: "cars", Name: "Cars"}, {ID: "gardening", Name: "Gardening"},
	{ID: "programming", Name: "Programming"}, {ID: "weather", Name: "Weather"},
}

func (p *Platform) listTopics(c *call) (answer, error) {
	q, err := query(c.r, "query")
	if err != nil {
		return answer{}, err
	}
	found := []topicView{}
	for _, t := range topics {
		if strings.Contains(strings.ToLower(t.Name), strings.ToLower(q.Get("query"))) {
			found = append(found, t)
		}
	}
	return answer{status: http.StatusOK, body: map[string]any{"topics": found}}, nil
}
