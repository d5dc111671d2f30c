package github

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// publicUser is the public user response in "Get the authenticated user". Blank values are null
// there, except blog. Email is only the publicly visible address.
type publicUser struct {
	Login             string  `json:"login"`
	ID                int64   `json:"id"`
	NodeID            string  `json:"node_id"`
	AvatarURL         string  `json:"avatar_url"`
	GravatarID        string  `json:"gravatar_id"`
	URL               string  `json:"url"`
	HTMLURL           string  `json:"html_url"`
	FollowersURL      string  `json:"followers_url"`
	FollowingURL      string  `json:"following_url"`
	GistsURL          string  `json:"gists_url"`
	StarredURL        string  `json:"starred_url"`
	SubscriptionsURL  string  `json:"subscriptions_url"`
	OrganizationsURL  string  `json:"organizations_url"`
	ReposURL          string  `json:"repos_url"`
	EventsURL         string  `json:"events_url"`
	ReceivedEventsURL string  `json:"received_events_url"`
	Type              string  `json:"type"`
	ViewType          string  `json:"user_view_type"`
	SiteAdmin         bool    `json:"site_admin"`
	Name              *string `json:"name"`
	Company           *string `json:"company"`
	Blog              string  `json:"blog"`
	Location          *string `json:"location"`
	Email             *string `json:"email"`
	Hireable          *bool   `json:"hireable"`
	Bio               *string `json:"bio"`
	TwitterUsername   *string `json:"twitter_username"`
	PublicRepos       int     `json:"public_repos"`
	PublicGists       int     `json:"public_gists"`
	Followers         int     `json:"followers"`
	Following         int     `json:"following"`
	CreatedAt         string  `json:"created_at"`
	UpdatedAt         string  `json:"updated_at"`
}

// privateUser is the private user response in "Get the authenticated user".
type privateUser struct {
	publicUser
	PrivateGists            int  `json:"private_gists"`
	TotalPrivateRepos       int  `json:"total_private_repos"`
	OwnedPrivateRepos       int  `json:"owned_private_repos"`
	DiskUsage               int  `json:"disk_usage"`
	Collaborators           int  `json:"collaborators"`
	TwoFactorAuthentication bool `json:"two_factor_authentication"`
}

// user implements "Get the authenticated user": a token with the scope read:user or user gets the
// private response, others get the public one.
func (p *Platform) user(c caller, _ *http.Request) apiAnswer {
	view := viewUser(c)
	if !hasScope(c.scopes, "read:user") {
		return apiAnswer{status: http.StatusOK, body: view}
	}
	view.ViewType = "private"
	return apiAnswer{status: http.StatusOK, body: privateUser{publicUser: view}}
}

// viewUser fills the URLs like the example on the page, with the simulator's address. The dates are
// from the example.
func viewUser(c caller) publicUser {
	self := c.base + "/users/" + c.user.Login
	id := strconv.FormatInt(c.user.ID, 10)
	view := publicUser{
		Login: c.user.Login, ID: c.user.ID, NodeID: base64.StdEncoding.EncodeToString([]byte("04:User" + id)),
		AvatarURL: c.web + "/avatars/u/" + id, URL: self, HTMLURL: c.web + "/" + c.user.Login,
		FollowersURL: self + "/followers", FollowingURL: self + "/following{/other_user}",
		GistsURL: self + "/gists{/gist_id}", StarredURL: self + "/starred{/owner}{/repo}",
		SubscriptionsURL: self + "/subscriptions", OrganizationsURL: self + "/orgs", ReposURL: self + "/repos",
		EventsURL: self + "/events{/privacy}", ReceivedEventsURL: self + "/received_events",
		Type: "User", ViewType: "public", CreatedAt: "2008-01-14T04:33:35Z", UpdatedAt: "2008-01-14T04:33:35Z",
	}
	if c.user.Name != "" {
		view.Name = &c.user.Name
	}
	for _, e := range c.user.Emails {
		if e.Visibility == VisibilityPublic {
			view.Email = &e.Email
		}
	}
	return view
}

// emailView is an element in "List email addresses for the authenticated user".
type emailView struct {
	Email      string      `json:"email"`
	Primary    bool        `json:"primary"`
	Verified   bool        `json:"verified"`
	Visibility *Visibility `json:"visibility"`
}

// emails implements "List email addresses for the authenticated user", which needs the scope
// user:email. "Authenticating to the REST API": insufficient permissions get 404 or 403; clients
// report 404 here, with this header.
func (p *Platform) emails(c caller, r *http.Request) apiAnswer {
	accepted := map[string]string{"X-Accepted-OAuth-Scopes": "user, user:email"}
	if !hasScope(c.scopes, "user:email") {
		out := notFound(docsEmails)
		out.header = accepted
		return out
	}
	pg, ok := readPaging(r.URL)
	if !ok {
		return apiProblem(http.StatusUnprocessableEntity, "Invalid request.", docsEmails)
	}
	list := []emailView{}
	for _, e := range c.user.Emails {
		view := emailView{Email: e.Email, Primary: e.Primary, Verified: e.Verified}
		if e.Visibility != VisibilityNone {
			view.Visibility = &e.Visibility
		}
		list = append(list, view)
	}
	out := apiAnswer{status: http.StatusOK, header: accepted}
	if links := pg.links(c.base+pathEmails, len(list)); links != "" {
		out.header["Link"] = links
	}
	from := min(len(list), (pg.page-1)*pg.size)
	out.body = list[from:min(len(list), from+pg.size)]
	return out
}

// paging is the position in a list.
type paging struct {
	page, size int
	query      url.Values
}

const maxPage = 1_000_000 // keeps page times size small

// readPaging implements the parameters on the endpoint page: per_page defaults to 30 and is at most
// 100, page defaults to 1. "Troubleshooting the REST API": a wrong type gets 422. It is an
// assumption that a number outside the range does too.
func readPaging(u *url.URL) (paging, bool) {
	out := paging{page: 1, size: 30, query: u.Query()}
	var err error
	if text := out.query.Get("per_page"); out.query.Has("per_page") {
		if out.size, err = strconv.Atoi(text); err != nil || out.size < 1 || out.size > 100 {
			return paging{}, false
		}
	}
	if text := out.query.Get("page"); out.query.Has("page") {
		if out.page, err = strconv.Atoi(text); err != nil || out.page < 1 || out.page > maxPage {
			return paging{}, false
		}
	}
	return out, true
}

// links returns the Link header as "Using pagination in the REST API" describes: it is omitted if
// all results fit on a single page; prev and first are absent on the first page, next and last on
// the last one.
func (pg paging) links(address string, total int) string {
	last := max(1, (total+pg.size-1)/pg.size)
	if last == 1 && pg.page == 1 {
		return ""
	}
	parts := []string{}
	add := func(page int, rel string) {
		pg.query.Set("page", strconv.Itoa(page))
		parts = append(parts, "<"+address+"?"+pg.query.Encode()+`>; rel="`+rel+`"`)
	}
	if pg.page > 1 {
		add(min(pg.page-1, last), "prev")
	}
	if pg.page < last {
		add(pg.page+1, "next")
		add(last, "last")
	}
	if pg.page > 1 {
		add(1, "first")
	}
	return strings.Join(parts, ", ")
}
