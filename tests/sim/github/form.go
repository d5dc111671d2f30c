package github

import (
	"cmp"
	_ "embed" // page.html
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

//go:embed page.html
var pageSource string

// webAnswer is a redirect if location is set, otherwise a page.
type webAnswer struct {
	status   int
	location string
	page     pageData
}

type pageData struct {
	Text    string // shown instead of the form
	App     string
	Request string
	Users   []pageUser
	Scopes  []string
}

type pageUser struct {
	ID       int64
	Login    string
	Selected bool
}

func page(status int, text string) webAnswer {
	return webAnswer{status: status, page: pageData{Text: text}}
}

func (a webAnswer) send(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	if a.location != "" {
		w.Header().Set("Location", a.location)
		w.WriteHeader(a.status)
		return
	}
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(a.status)
	_ = t.Execute(w, a.page) // the client may have disconnected
}

// pending is an authorization request whose form has not been submitted yet.
type pending struct {
	authorization
	expires time.Time
}

// ask shows the form: an account picker, the requested scopes and two buttons. The simulator has
// its own form, because the documentation does not describe GitHub's. Clients leave the form to the
// browser.
func (p *Platform) ask(req authorization, userID int64) webAnswer {
	now := p.opts.Clock.Now()
	maps.DeleteFunc(p.pending, func(_ string, w pending) bool { return !now.Before(w.expires) })
	if len(p.pending) >= maxPending {
		return page(http.StatusServiceUnavailable, "Too many forms are open.")
	}
	key := newCode()
	p.pending[key] = pending{authorization: req, expires: now.Add(codeLife)}
	data := pageData{App: cmp.Or(req.appName, req.clientID), Request: key, Scopes: req.scopes}
	for _, id := range slices.Sorted(maps.Keys(p.users)) {
		login := p.users[id].Login
		selected := login == req.login || id == userID && req.login == ""
		data.Users = append(data.Users, pageUser{ID: id, Login: login, Selected: selected})
	}
	return webAnswer{status: http.StatusOK, page: data}
}

// answerForm receives the form that ask shows. Its fields are request, user (an ID), scope (any
// number) and decision (authorize or cancel).
func (p *Platform) answerForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		page(http.StatusBadRequest, "The form is malformed.").send(w)
		return
	}
	p.mu.Lock()
	out := p.decide(r.PostForm.Get("request"), r.PostForm.Get("user"), r.PostForm.Get("decision"), r.PostForm["scope"])
	p.mu.Unlock()
	out.send(w)
}

func (p *Platform) decide(request, user, decision string, chosen []string) webAnswer {
	req, ok := p.pending[request]
	if !ok || !p.opts.Clock.Now().Before(req.expires) {
		return page(http.StatusBadRequest, "The form was answered before or has expired. Start the sign-in again.")
	}
	userID, _ := strconv.ParseInt(user, 10, 64) // 0 is not a user
	if _, ok := p.users[userID]; !ok {
		return page(http.StatusBadRequest, "There is no such account.")
	}
	delete(p.pending, request)
	switch decision {
	case "authorize":
		return p.complete(req.authorization, userID, without(req.scopes, without(req.scopes, chosen)))
	case "cancel":
		return req.refuse(errAccessDenied)
	}
	return page(http.StatusBadRequest, "The decision must be authorize or cancel.")
}
