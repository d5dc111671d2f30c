package sandboxtest

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"time"

	"crier/tests/call"
)

// Judge reads what a sandbox has published and scripts its faults.
type Judge struct{ URL string }

// Post is a post that the sandbox has published. ReplyTo is the ID of the post that it replies to,
// or "".
type Post struct {
	ID, Text, ReplyTo string
	// At is when the sandbox published the post, by the sandbox's clock.
	At    time.Time
	Media []struct{ SHA256, Alt string }
}

// Fault scripts a fault for an account, or for every account if account is "". It returns the
// fault's id.
func (j Judge) Fault(ctx context.Context, account string, fault map[string]any) (string, error) {
	fault = maps.Clone(fault)
	if account != "" {
		fault["account"] = account
	}
	var made struct{ ID string }
	err := j.ask(ctx, http.MethodPost, "faults", fault, &made)
	return made.ID, err
}

// Release lets the requests that a fault holds proceed.
func (j Judge) Release(ctx context.Context, fault string) error {
	return j.ask(ctx, http.MethodPost, "faults/"+fault+"/release", nil, nil)
}

// Clear removes the faults of an account, or all faults if account is "".
func (j Judge) Clear(ctx context.Context, account string) error {
	path := "faults"
	if account != "" {
		path += "?account=" + url.QueryEscape(account)
	}
	return j.ask(ctx, http.MethodDelete, path, nil, nil)
}

// Held returns how many requests each fault is holding, keyed by fault id.
func (j Judge) Held(ctx context.Context) (map[string]int, error) {
	var all struct {
		Faults []struct {
			ID   string
			Held int
		}
	}
	err := j.ask(ctx, http.MethodGet, "faults", nil, &all)
	held := map[string]int{}
	for _, f := range all.Faults {
		held[f.ID] = f.Held
	}
	return held, err
}

// Posts returns the published posts of an account, oldest first. An error means that the sandbox
// did not respond or refused.
func (j Judge) Posts(ctx context.Context, account string) ([]Post, error) {
	var all struct{ Posts []Post }
	err := j.ask(ctx, http.MethodGet, "posts?account="+url.QueryEscape(account), nil, &all)
	return all.Posts, err
}

func (j Judge) ask(ctx context.Context, method, path string, body, out any) error {
	a, err := call.Do(ctx, http.DefaultClient, method, j.URL+"/_sim/"+path, body)
	if err != nil {
		return err
	}
	return a.Into(out)
}
