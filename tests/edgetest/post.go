package edgetest

import (
	"context"
	"errors"

	"crier/publishing"
	"crier/tenancy"
)

// PostBody is a valid body of POST /posts, including members that clients of other services send.
const PostBody = `{"type":"schedule","date":"2026-05-01T10:00:00","shortLink":true,"order":"x","creationMethod":"CLI",
"tags":["a",{"value":"b","label":"b"}],
"posts":[{"integration":{"id":"c1"},"group":"","value":[{"id":"","content":"Hi","image":["m1",{"id":"m2"},
{"id":"r","path":"http://crier.test/files/k/a.png"},{"id":"","url":"/files/k/b.png","alt":"b"}]}]}]}`

// posts implements the post port.
type posts struct{ *World }

// storeTexts returns an error if a text of a command cannot be stored. It covers the texts that
// reach the database before the rules of publishing are checked.
func storeTexts(cmd publishing.CreatePosts) error {
	texts := []string{cmd.IdempotencyKey, string(cmd.Type)}
	for _, e := range cmd.Entries {
		texts = append(texts, e.Channel, e.Group)
		for _, v := range e.Parts {
			texts = append(texts, v.ID, v.Content)
			for _, m := range v.Media {
				texts = append(texts, m.ID, m.URL, m.Alt)
			}
		}
	}
	return sql(texts...)
}

func (p posts) ChangeSettings(
	_ context.Context, _ tenancy.Principal, id string, cmd publishing.ChangeSettings,
) (publishing.SettingsChanged, error) {
	if err := cmd.Validate(); err != nil {
		return publishing.SettingsChanged{}, err
	}
	return publishing.SettingsChanged{}, p.note(id)
}

func (p posts) Check(_ context.Context, _ tenancy.Principal, cmd publishing.CreatePosts) ([]publishing.Checked, error) {
	return make([]publishing.Checked, len(cmd.Entries)), p.note()
}

func (p posts) Create(
	_ context.Context, _ tenancy.Principal, cmd publishing.CreatePosts,
) (publishing.CreateResult, error) {
	if p.Panics.Load() {
		panic("secret cause") // a broken handler
	}
	p.Creating.Add(1)
	if p.Release != nil {
		<-p.Release
	}
	if err := storeTexts(cmd); err != nil {
		return publishing.CreateResult{}, err
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Creates = append(p.Creates, cmd)
	if p.Err != nil {
		return publishing.CreateResult{}, p.Err
	}
	return p.Result, cmd.Validate()
}

func (p posts) List(_ context.Context, _ tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Lists = append(p.Lists, q)
	if err := sql(q.Customer); err != nil {
		return publishing.ThreadPage{}, err
	}
	return publishing.ThreadPage{Threads: []publishing.Thread{p.Thread}, Total: 41, HasMore: true}, p.Err
}

func (p posts) Get(_ context.Context, _ tenancy.Principal, id string) (publishing.PostDetail, error) {
	reason := "by hand"
	return publishing.PostDetail{
		Thread: p.Thread, Events: []publishing.Event{{At: Day, Kind: publishing.EventWritten, Reason: &reason}},
	}, p.note(id)
}

func (p posts) Delete(_ context.Context, _ tenancy.Principal, id string) error { return p.note(id) }

func (p posts) DeleteGroup(_ context.Context, _ tenancy.Principal, group string) error {
	return p.note(group)
}

func (p posts) ChangeStatus(
	_ context.Context, _ tenancy.Principal, id string, cmd publishing.ChangeStatus,
) (publishing.StatusChanged, error) {
	if err := cmd.Validate(); err != nil {
		return publishing.StatusChanged{}, err
	}
	if cmd.To == publishing.CreateDraft {
		return publishing.StatusChanged{State: publishing.StateDraft}, p.note(id)
	}
	return publishing.StatusChanged{State: publishing.StateWaiting}, p.note(id)
}

func (p posts) Missing(_ context.Context, _ tenancy.Principal, id string) ([]publishing.RemoteItem, error) {
	return []publishing.RemoteItem{{ID: "remote", URL: "https://platform.test/remote"}}, p.note(id)
}

func (p posts) SetRelease(_ context.Context, _ tenancy.Principal, id, release string) error {
	return errors.Join(sql(release), p.note(id))
}
