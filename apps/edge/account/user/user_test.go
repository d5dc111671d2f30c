package user_test

import (
	"fmt"
	"testing"

	"crier/tests/edgetest"
)

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	edgetest.CheckExchanges(t, []edgetest.Exchange{
		{
			As: edgetest.UserSession, Method: "GET", Path: "/user/personal", Status: 200,
			Parts: []string{`"name":"Ada"`, `"bio":"Counts."`, `"picture":{"id":"kept","path":"http://elsewhere.test/kept.png"}`}, Calls: []string{"Self"},
		},
		{
			As: edgetest.HomelessSession, Method: "POST", Path: "/user/personal", Body: `{"fullname":"Ada L."}`, Status: 201,
			Parts: []string{`"name":"Ada L."`, `"picture":null`}, Calls: []string{"SetProfile Ada L."},
		},
		{
			As: edgetest.HomelessSession, Method: "POST", Path: "/user/personal", Body: `{"fullname":"Ada","picture":null,"bio":null}`, Status: 201,
			Parts: []string{`"picture":null`}, Calls: []string{"SetProfile Ada"},
		},
		{
			As: edgetest.UserSession, Method: "GET", Path: "/user/email-notifications", Status: 200,
			Parts: []string{`"sendSuccessEmails":false`, `"sendFailureEmails":true`, `"events":{"approval":"mail","comment":"bell"`}, Calls: []string{"Notifications"},
		},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/email-notifications",
			Body:   `{"sendSuccessEmails":true,"sendFailureEmails":false,"sendStreakEmails":true,"events":{"comment":"off"}}`,
			Status: 201, Parts: []string{`"sendStreakEmails":true`, `"comment":"off"`, `"billing":"mail"`},
			Calls: []string{"Notifications", "SetNotifications true false true mail off mail mail"},
		},
		{As: edgetest.UserSession, Method: "POST", Path: "/user/email-notifications", Body: `{"sendSuccessEmails":true}`, Status: 400, Parts: []string{"sendFailureEmails is required"}},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/email-notifications", Status: 400, Parts: []string{"events.comment must be one of"},
			Body: `{"sendSuccessEmails":true,"sendFailureEmails":false,"sendStreakEmails":true,"events":{"comment":"fax"}}`,
		},
		{
			As: edgetest.UserSession, Method: "POST", Path: "/user/setup", Body: `{"company":"Acme","fullname":"Ada","timezone":-330}`, Status: 201,
			Parts: []string{`{"setup":true}`}, Calls: []string{"Setup Ada Acme  -330"},
		},
		{As: edgetest.UserSession, Method: "POST", Path: "/user/setup", Body: `{"timezone":"Mars/Olympus"}`, Status: 400, Parts: []string{"no time zone"}},
	})
}

func TestSelf_OfEachPerson(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "auth", edgetest.AdminSession), 200,
		`"id":"`+edgetest.PersonID.String()+`","email":"ada@example.org","name":"Ada","lastName":""`, `"pictureId":"kept","providerName":"GITHUB"`,
		`"orgId":"`+edgetest.OrgID.String()+`"`, `"tier":"ULTIMATE","role":"ADMIN","access":"full"`, `"publicApi":"crier_ab12…"`,
		`"sendFailureEmails":true`, `"streakSince":null`, `"timezone":"Europe/Vienna"`)
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "auth", edgetest.UserSession), 200, `"role":"USER"`, `"publicApi":""`)
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "auth", edgetest.HomelessSession), 200, `"orgId":""`, `"access":"none"`, `"role":""`)
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "auth", edgetest.SuspendedSession), 200, `"access":"suspended"`, `"publicApi":""`)
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "auth", edgetest.InstanceSession), 200, `"admin":true,"impersonate":false`)
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "auth", edgetest.ImpersonatorSession), 200, `"admin":false,"impersonate":true`)
}

func TestProfile_PictureIsOwnMedium(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	set := func(session, id string) edgetest.Answer {
		return s.Call(t, "POST", "/user/personal", fmt.Sprintf(`{"fullname":"Ada","picture":{"id":%q,"path":"https://evil.test/track.png"}}`, id),
			"Content-Type", "application/json", "auth", session)
	}
	own := edgetest.BaseURL + edgetest.Picture.Path()
	edgetest.Want(t, set(edgetest.UserSession, edgetest.Picture.ID.String()), 201, `"picture":{"id":"`+edgetest.Picture.ID.String()+`","path":"`+own+`"}`)
	s.WantCalls(t, "Self", "SetProfile Ada  "+edgetest.Picture.ID.String()+" "+own)
	// The person already has this picture.
	edgetest.Want(t, set(edgetest.HomelessSession, "kept"), 201, `"path":"http://elsewhere.test/kept.png"`)
	edgetest.Want(t, set(edgetest.UserSession, "another"), 400, "picture.id must be the id of an image")
	edgetest.Want(t, set(edgetest.HomelessSession, edgetest.Picture.ID.String()), 400, "picture.id")
}
