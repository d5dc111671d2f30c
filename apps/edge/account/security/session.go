package security

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// SessionLists lists and ends a person's sessions.
type SessionLists interface {
	// ListSessions returns the person's live sessions, newest first.
	ListSessions(ctx context.Context, p tenancy.Principal) ([]tenancy.SessionInfo, error)
	// EndSessions ends the session with the given id. If the id is empty, it ends all of the
	// person's sessions except the one making the request. It returns the number of sessions that
	// ended, or NotFound if the person has no session with that id.
	EndSessions(ctx context.Context, p tenancy.Principal, session string) (int, error)
}

// SessionRecord describes a live session.
type SessionRecord struct {
	ID        string `json:"id"`
	Current   bool   `json:"current" doc:"Whether this is the session that made the request."`
	CreatedAt string `json:"createdAt" format:"date-time"`
	SeenAt    string `json:"lastSeenAt" format:"date-time" doc:"When the session was last used, to the minute."`
	ExpiresAt string `json:"expiresAt" format:"date-time"`
	Address   string `json:"address" doc:"IP address from which the session was last used."`
	Agent     string `json:"userAgent"`
}

type sessionsOutput struct{ Body []SessionRecord }

// ListSessions returns the endpoint that lists the person's sessions.
func (a *API) ListSessions() route.Endpoint {
	return route.JSON(route.Describe("Security", "List your sessions"), a.listSessions)
}

func (a *API) listSessions(ctx context.Context, _ *struct{}) (*sessionsOutput, error) {
	list, err := a.deps.Accounts.ListSessions(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &sessionsOutput{Body: make([]SessionRecord, 0, len(list))}
	for _, s := range list {
		out.Body = append(out.Body, SessionRecord{
			ID: s.ID.String(), Current: s.Current, CreatedAt: record.FormatTime(s.CreatedAt),
			SeenAt: record.FormatTime(s.SeenAt), ExpiresAt: record.FormatTime(s.ExpiresAt),
			Address: s.Address, Agent: s.Agent,
		})
	}
	return out, nil
}

type endSessionsInput struct {
	ID string `query:"id" maxLength:"64" doc:"Id of a session. If absent, all sessions except the current one."`
}

// EndedResponse contains the number of sessions that ended.
type EndedResponse struct {
	Ended int `json:"ended"`
}

type endedOutput struct{ Body EndedResponse }

// EndSessions returns the endpoint that ends one session, or all sessions except the one making the
// request.
func (a *API) EndSessions() route.Endpoint {
	return route.JSON(route.Describe("Security", "End one session, or all other sessions", 400, 404), a.endSessions)
}

func (a *API) endSessions(ctx context.Context, in *endSessionsInput) (*endedOutput, error) {
	n, err := a.deps.Accounts.EndSessions(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &endedOutput{Body: EndedResponse{Ended: n}}, nil
}
