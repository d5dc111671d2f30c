package accounts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/tidwall/gjson"

	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/call"
	"crier/tests/sandboxtest"
)

// twiceCases returns the cases, keyed by route.
func twiceCases() map[string]prepare {
	all := map[string]prepare{}
	for _, some := range []map[string]prepare{
		postCases(), contentCases(), webhookCases(), channelCases(), signInCases(), factorCases(), personCases(), organizationCases(),
		agentCases(),
	} {
		for name, c := range some {
			for route := range strings.SplitSeq(name, " | ") {
				all[route] = c
			}
		}
	}
	return all
}

// wantIDs fails the test unless the responses have different ids and the list has all of them.
func (o *owner) wantIDs(kept []call.Answer, list gjson.Result) {
	o.t.Helper()
	o.wantListed(list, fields(kept, "id")...)
	if ids := fields(kept, "id"); len(ids) == 2 && ids[0] == ids[1] {
		o.t.Errorf("both answers have the id %s, want two", ids[0])
	}
}

func (o *owner) wantListed(list gjson.Result, ids ...string) {
	o.t.Helper()
	for _, id := range ids {
		if id == "" || !strings.Contains(list.Raw, `"`+id+`"`) {
			o.t.Errorf("%q is not in %s", id, list.Raw)
		}
	}
}

func (o *owner) wantGone(list gjson.Result, ids ...string) {
	o.t.Helper()
	for _, id := range ids {
		if strings.Contains(list.Raw, id) {
			o.t.Errorf("%s is in %s, want it gone", id, list.Raw)
		}
	}
}

// wantValue checks the value at a path of a response.
func (o *owner) wantValue(body gjson.Result, path, want string) {
	o.t.Helper()
	if got := body.Get(path).String(); got != want {
		o.t.Errorf("%s is %q in %s, want %q", path, got, body.Raw, want)
	}
}

// fields returns the value at a path of each response.
func fields(answers []call.Answer, path string) (out []string) {
	for _, a := range answers {
		out = append(out, gjson.Get(a.Body, path).String())
	}
	return out
}

func postCases() map[string]prepare {
	published := func(key string, want int) prepare {
		return func(o *owner) twice {
			channel := o.channel()
			return twice{body: o.newPost("now", channel), headers: []string{"Idempotency-Key", key}, holds: func(kept []call.Answer) {
				ids := slices.Compact(slices.Sorted(slices.Values(fields(kept, "0.postId"))))
				for _, post := range ids {
					eventually(o.t, "the publication", func() bool { return o.get("/public/v1/posts/"+post).Get("state").String() == "PUBLISHED" })
				}
				posts, err := o.judge.Posts(o.t.Context(), "account-"+o.name)
				if must(o.t, err); len(ids) != want || len(posts) != want {
					o.t.Errorf("got the posts %v and %d on the platform, want %d", ids, len(posts), want)
				}
			}}
		}
	}
	deletion := func(path string) prepare {
		return func(o *owner) twice {
			post := o.post("schedule")
			of := map[string]string{"id": post, "group": o.get("/public/v1/posts/" + post).Get("group").String()}[path]
			return twice{ids: []string{of}, holds: func([]call.Answer) { o.wantStatus(404, "GET", "/public/v1/posts/"+post) }}
		}
	}
	return map[string]prepare{
		"POST /public/v1/posts, with a key":    published("one-request", 1),
		"POST /public/v1/posts, without a key": published("", 2),
		"POST /public/v1/posts, as an edit": func(o *owner) twice {
			channel := o.channel()
			post := o.post201("/posts", o.newPost("schedule", channel)).Get("0.postId").String()
			body := o.newPost("update", channel)
			body["posts"] = []m{{"integration": m{"id": channel}, "value": []m{{"id": post, "content": "other words"}}}}
			return twice{body: body, holds: func([]call.Answer) {
				o.wantValue(o.get("/public/v1/posts/"+post), "content", "other words")
				o.wantValue(o.get("/public/v1/posts/"+post), "state", "QUEUE")
			}}
		},
		"POST /public/v1/posts/check | POST /posts/check": func(o *owner) twice {
			return twice{body: m{"posts": o.newPost("schedule", o.channel())["posts"]}, holds: func([]call.Answer) {
				o.wantValue(o.get("/public/v1/posts?page=0"), "#", "0")
			}}
		},
		"DELETE /public/v1/posts/{id}":          deletion("id"),
		"DELETE /public/v1/posts/group/{group}": deletion("group"),
		"PUT /public/v1/posts/{id}/release-id | PUT /posts/{id}/release-id": func(o *owner) twice {
			post := o.post("draft")
			return twice{ids: []string{post}, body: m{"releaseId": "of the platform"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/public/v1/posts/"+post), "releaseId", "of the platform")
			}}
		},
		"PUT /public/v1/posts/{id}/settings": func(o *owner) twice {
			post := o.post("schedule")
			return twice{ids: []string{post}, body: m{"settings": m{}}, holds: func(kept []call.Answer) {
				o.wantValue(o.get("/public/v1/posts/"+post), "state", "QUEUE")
				if ids := fields(kept, "postId"); slices.Contains(ids, "") {
					o.t.Errorf("got the ids %q, want that of the post", ids)
				}
			}}
		},
		"PUT /public/v1/posts/{id}/status": func(o *owner) twice {
			post := o.post("draft")
			return twice{ids: []string{post}, body: m{"status": "schedule"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/public/v1/posts/"+post), "state", "QUEUE")
			}}
		},
		"POST /public/v1/posts/{id}/request-approval": func(o *owner) twice {
			post := o.post("draft")
			return twice{ids: []string{post}, body: m{}, holds: func(kept []call.Answer) {
				o.wantValue(o.get("/public/v1/posts/"+post+"/approval"), "status", "PENDING")
				o.wantStatus(200, "GET", "/public/approval-review/"+o.reviewToken())
				o.wantListed(o.get("/approvals"), fields(kept, "id")...)
			}}
		},
		"DELETE /public/v1/approvals/{id} | DELETE /approvals/{id}": func(o *owner) twice {
			approval, _, token := o.approval()
			return twice{ids: []string{approval}, holds: func([]call.Answer) {
				o.wantStatus(410, "GET", "/public/approval-review/"+token)
			}}
		},
		"POST /approvals/{id}/resolve": func(o *owner) twice {
			approval, post, _ := o.approval()
			return twice{as: o.member(tenancy.RoleAdmin), ids: []string{approval}, body: m{"action": "approve"}, holds: o.approved(post)}
		},
		"POST /public/approval-review/{token}/resolve": func(o *owner) twice {
			_, post, token := o.approval()
			return twice{as: o.visitor(o.t), ids: []string{token}, body: m{"action": "approve", "reviewerName": "Bob"}, holds: o.approved(post)}
		},
		"POST /review/{token}": func(o *owner) twice {
			_, post, token := o.approval()
			form := []string{"Content-Type", "application/x-www-form-urlencoded"}
			return twice{as: o.visitor(o.t), ids: []string{token}, headers: form, body: "action=approve&reviewerName=Bob", holds: o.approved(post)}
		},
	}
}

func (o *owner) approved(post string) func([]call.Answer) {
	return func(kept []call.Answer) {
		o.wantValue(o.get("/public/v1/posts/"+post+"/approval"), "status", "APPROVED")
		if len(kept) != 1 {
			o.t.Errorf("%d answers say that they approve, want one", len(kept))
		}
	}
}

func contentCases() map[string]prepare {
	files := func(kept []call.Answer, o *owner) {
		o.wantIDs(kept, o.get("/public/v1/media?page=1"))
		for i, a := range kept {
			o.wantStatus(200, "GET", strings.TrimPrefix(gjson.Get(a.Body, "path").String(), twiceURL))
			o.ask("DELETE", "/public/v1/media/"+gjson.Get(a.Body, "id").String(), nil)
			for _, other := range kept[i+1:] {
				o.wantStatus(200, "GET", strings.TrimPrefix(gjson.Get(other.Body, "path").String(), twiceURL))
			}
		}
	}
	deleted := func(o *owner) twice {
		file := o.upload()
		return twice{ids: []string{file.Get("id").String()}, holds: func([]call.Answer) {
			o.wantGone(o.get("/public/v1/media?page=1"), file.Get("id").String())
			o.wantStatus(404, "GET", strings.TrimPrefix(file.Get("path").String(), twiceURL))
		}}
	}
	tag := func(o *owner) string {
		return o.post201("/tags", m{"name": "a tag", "color": "#123456"}).Get("id").String()
	}
	return map[string]prepare{
		"POST /public/v1/upload": func(o *owner) twice {
			body, kind := uploadForm(o.t)
			return twice{body: body, headers: []string{"Content-Type", kind}, holds: func(kept []call.Answer) { files(kept, o) }}
		},
		"POST /upload/{token} | PUT /upload/{token}": func(o *owner) twice {
			ask := m{
				"jsonrpc": "2.0", "id": 1, "method": "tools/call",
				"params": m{"name": "service_upload_from_url", "arguments": m{}},
			}
			made := o.ask("POST", "/mcp", ask, "Authorization", "Bearer "+o.key)
			address := made.Get("result.structuredContent.output.uploadUrl").String()
			body, kind := uploadForm(o.t)
			token := strings.TrimPrefix(address, twiceURL+"/upload/")
			return twice{as: o.visitor(o.t), ids: []string{token}, body: body, headers: []string{"Content-Type", kind}, holds: func(kept []call.Answer) {
				if len(kept) != 1 {
					o.t.Errorf("%d answers have a file, want one: the address counts once", len(kept))
				}
				o.wantValue(o.get("/public/v1/media?page=1"), "results.#", "1")
				files(kept, o)
			}}
		},
		"POST /public/v1/upload-from-url": func(o *owner) twice {
			return twice{body: m{"url": o.receiver + "/a.png"}, holds: func(kept []call.Answer) { files(kept, o) }}
		},
		"POST /public/v1/upload-from-url, of its own file": func(o *owner) twice {
			own := o.upload()
			return twice{body: m{"url": own.Get("path").String()}, holds: func(kept []call.Answer) {
				files(kept, o)
				o.wantStatus(200, "GET", strings.TrimPrefix(own.Get("path").String(), twiceURL))
			}}
		},
		"DELETE /public/v1/media/{id} | DELETE /media/{id}": deleted,
		"POST /media/information": func(o *owner) twice {
			file := o.upload().Get("id").String()
			return twice{body: m{"id": file, "alt": "a text"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/media?page=1"), "results.0.alt", "a text")
			}}
		},
		"POST /public/v1/tags | POST /posts/tags": func(o *owner) twice {
			return twice{body: m{"name": "a tag", "color": "#123456"}, holds: func(kept []call.Answer) {
				o.wantIDs(kept, o.get("/public/v1/tags"))
				o.wantValue(o.get("/posts/tags"), "tags.#", "1")
			}}
		},
		"PUT /public/v1/tags/{id} | PUT /posts/tags/{id}": func(o *owner) twice {
			return twice{ids: []string{tag(o)}, body: m{"name": "another", "color": "#654321"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/posts/tags"), "tags.0.name", "another")
			}}
		},
		"DELETE /public/v1/tags/{id} | DELETE /posts/tags/{id}": func(o *owner) twice {
			return twice{ids: []string{tag(o)}, holds: func([]call.Answer) { o.wantValue(o.get("/posts/tags"), "tags.#", "0") }}
		},
	}
}

func webhookCases() map[string]prepare {
	creation := func(o *owner) twice {
		body := m{"name": "new", "url": o.receiver + "/new", "integrations": []any{}}
		return twice{body: body, holds: func(kept []call.Answer) { o.wantIDs(kept, o.get("/webhooks")) }}
	}
	change := func(byBody bool, change m, holds func(o *owner, secret string)) prepare {
		return func(o *owner) twice {
			hook, secret := o.webhook()
			if byBody {
				change = m{"id": hook, "name": change["name"], "secret": change["secret"]}
			}
			return twice{ids: []string{hook}, body: change, holds: func([]call.Answer) {
				o.wantValue(o.get("/public/v1/webhooks"), "0.name", "renamed")
				holds(o, secret)
			}}
		}
	}
	nothing := func(*owner, string) {}
	rotation := func(o *owner) twice {
		hook, secret := o.webhook()
		return twice{ids: []string{hook}, body: m{}, holds: func(kept []call.Answer) {
			for _, a := range kept {
				if until, err := time.Parse(time.RFC3339, gjson.Get(a.Body, "previousSecretUntil").String()); err != nil || time.Until(until) < time.Hour {
					o.t.Errorf("got %v, want the end of the secret before", a)
				}
			}
			o.wantSignedBy(hook, append(fields(kept, "secret"), secret)...)
		}}
	}
	test := func(o *owner) twice {
		hook, _ := o.webhook()
		return twice{ids: []string{hook}, body: m{}, holds: func(kept []call.Answer) {
			o.wantIDs(kept, o.get("/webhooks/"+hook+"/deliveries"))
		}}
	}
	return map[string]prepare{
		"POST /public/v1/webhooks | POST /webhooks": creation,
		"PUT /public/v1/webhooks/{id}":              change(false, m{"name": "renamed"}, nothing),
		"PUT /webhooks":                             change(true, m{"name": "renamed"}, nothing),
		"DELETE /public/v1/webhooks/{id} | DELETE /webhooks/{id}": func(o *owner) twice {
			hook, _ := o.webhook()
			return twice{ids: []string{hook}, holds: func([]call.Answer) { o.wantGone(o.get("/webhooks"), hook) }}
		},
		"POST /public/v1/webhooks/{id}/rotate-secret | POST /webhooks/{id}/rotate-secret": rotation,
		"POST /public/v1/webhooks/{id}/test | POST /webhooks/{id}/test":                   test,
		"POST /public/v1/webhooks/{id}/deliveries/{deliveryId}/replay | POST /webhooks/{id}/deliveries/{deliveryId}/replay": func(o *owner) twice {
			hook, _ := o.webhook()
			delivery := o.post201("/webhooks/"+hook+"/test", m{}).Get("id").String()
			ended := func() bool { return o.get("/webhooks/"+hook+"/deliveries").Get("0.state").String() == "delivered" }
			eventually(o.t, "the delivery", ended)
			return twice{ids: []string{hook, delivery}, body: m{}, holds: func([]call.Answer) {
				o.wantValue(o.get("/webhooks/"+hook+"/deliveries"), "#", "1")
				eventually(o.t, "the replay", func() bool { return ended() && len(o.received.to("/"+o.name)) > 1 })
			}}
		},
		"POST /webhooks/send": func(o *owner) twice {
			query := "?url=" + url.QueryEscape(o.receiver+"/"+o.name)
			return twice{query: query, body: m{}, holds: func(kept []call.Answer) {
				if calls := o.received.to("/" + o.name); len(calls) != len(kept) {
					o.t.Errorf("%d calls reached the receiver, want %d", len(calls), len(kept))
				}
			}}
		},
	}
}

// wantSignedBy fails the test unless the next delivery is signed with all of the secrets.
func (o *owner) wantSignedBy(hook string, secrets ...string) {
	o.t.Helper()
	before := len(o.received.to("/" + o.name))
	o.post201("/webhooks/"+hook+"/test", m{})
	eventually(o.t, "the delivery", func() bool { return len(o.received.to("/"+o.name)) > before })
	got := o.received.to("/" + o.name)[before]
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		must(o.t, err)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(got.header.Get("webhook-id") + "." + got.header.Get("webhook-timestamp") + "." + got.body))
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if signed := got.header.Get("webhook-signature"); !slices.Contains(strings.Fields(signed), want) {
			o.t.Errorf("secret %d of %d does not sign: the signatures are %s", i+1, len(secrets), signed)
		}
	}
}

func channelCases() map[string]prepare {
	plan := func(o *owner) twice {
		channel := o.channel()
		return twice{ids: []string{channel}, body: m{"time": []m{{"time": 560}}}, holds: func([]call.Answer) {
			o.wantValue(o.get("/public/v1/integrations/"+channel+"/queue-plan"), "time.#.time", "[560]")
		}}
	}
	pause := func(id func(o *owner) string) prepare {
		return func(o *owner) twice {
			x := twice{body: m{"paused": true}, holds: func(kept []call.Answer) {
				for _, paused := range fields(kept, "paused") {
					if paused != "true" {
						o.t.Errorf("got paused %s, want true", paused)
					}
				}
			}}
			if id != nil {
				x.ids = []string{id(o)}
			}
			return x
		}
	}
	connected := func(o *owner, want int) func([]call.Answer) {
		return func([]call.Answer) { o.wantValue(o.get("/public/v1/integrations"), "#", "1") }
	}
	// chooser starts an OAuth connect and returns its state, its channel, and the first of the
	// pages to choose from.
	chooser := func(o *owner) (state, channel, page string) {
		begun := o.get("/public/v1/social/sandbox-oauth").Get("url").String()
		back, err := o.judge.Browse(o.t.Context(), begun, sandboxtest.Consent{User: o.name})
		must(o.t, err)
		u, err := url.Parse(back)
		must(o.t, err)
		done := o.session201("/integrations/social-connect/sandbox-oauth", m{"state": u.Query().Get("state"), "code": u.Query().Get("code")})
		return u.Query().Get("state"), done.Get("id").String(), done.Get("pages.0.id").String()
	}
	return map[string]prepare{
		"PUT /public/v1/integrations/{id}/queue-plan | PUT /integrations/{id}/queue-plan | POST /integrations/{id}/time": plan,
		"PUT /integrations/{id}/pause": pause((*owner).channel),
		"PUT /settings/pause":          pause(nil),
		"PUT /customers/{id}/pause": pause(func(o *owner) string {
			customer := id.New[struct{}]().String()
			o.exec(o.t, `insert into customer (org_id, id, name) values ($1, $2, 'a customer')`, o.org, customer)
			return customer
		}),
		"DELETE /public/v1/integrations/{id}": func(o *owner) twice {
			channel := o.channel()
			return twice{ids: []string{channel}, holds: func([]call.Answer) { o.wantGone(o.get("/public/v1/integrations"), channel) }}
		},
		"POST /public/v1/connectors/{id}/authorize": func(o *owner) twice {
			return twice{ids: []string{"sandbox-oauth"}, body: m{}, holds: func(kept []call.Answer) {
				for i, address := range fields(kept, "url") {
					back, err := o.judge.Browse(o.t.Context(), address, sandboxtest.Consent{User: o.name})
					must(o.t, err)
					if u, err := url.Parse(back); err != nil || u.Query().Get("state") == "" {
						o.t.Errorf("connect %d leads to %s, %v; want the page of the connect", i, back, err)
					} else {
						o.ask("GET", u.RequestURI(), nil)
					}
				}
			}}
		},
		"POST /integrations/social-connect/{integration}": func(o *owner) twice {
			return twice{ids: []string{"sandbox"}, body: o.connect(), refused: []int{400}, holds: connected(o, 1)}
		},
		"POST /integrations/provider/{id}/connect": func(o *owner) twice {
			_, channel, page := chooser(o)
			return twice{ids: []string{channel}, body: m{"page": page}, refused: []int{400}, holds: connected(o, 1)}
		},
		"POST /integrations/public/provider/{id}/connect": func(o *owner) twice {
			state, channel, page := chooser(o)
			return twice{ids: []string{channel}, body: m{"page": page, "state": state}, refused: []int{400}, holds: connected(o, 1)}
		},
		"POST /connect/{integration}": func(o *owner) twice {
			state, _, page := chooser(o)
			query := "?" + url.Values{"state": {state}, "page": {page}}.Encode()
			return twice{ids: []string{"sandbox-oauth"}, query: query, refused: []int{400}, holds: connected(o, 1)}
		},
	}
}

func signInCases() map[string]prepare {
	const other = "another good password"
	register := func(o *owner) {
		o.session201("/auth/register", m{"provider": "LOCAL", "email": "new-" + o.email, "password": password, "company": "New Works"})
	}
	// home fails the test unless the new person can activate the account and has one organization.
	home := func(o *owner) func([]call.Answer) {
		return func([]call.Answer) {
			body := func(token string) m { return m{"code": token, "password": password} }
			o.redeem("/auth/activate", body, "new-"+o.email, password, "new-"+o.email)
			visitor := o.visitor(o.t)
			visitor.session = o.login("new-"+o.email, password)
			visitor.wantValue(visitor.get("/user/organizations"), "#", "1")
		}
	}
	reset := func(o *owner, token string) m { return m{"password": other, "repeatPassword": other, "token": token} }
	// moved fails the test unless the person can confirm the new address with the mails to both
	// addresses.
	moved := func(o *owner) func([]call.Answer) {
		return func([]call.Answer) {
			body := func(token string) m { return m{"token": token} }
			o.redeem("/auth/confirm-email", body, "new-"+o.email, password, "new-"+o.email, o.email)
		}
	}
	return map[string]prepare{
		"POST /auth/register": func(o *owner) twice {
			body := m{"provider": "LOCAL", "email": "new-" + o.email, "password": password, "company": "New Works"}
			return twice{as: o.visitor(o.t), body: body, holds: home(o)}
		},
		"POST /auth/resend-activation": func(o *owner) twice {
			register(o)
			o.letter("new-" + o.email)
			return twice{as: o.visitor(o.t), body: m{"email": "new-" + o.email}, holds: home(o)}
		},
		"POST /auth/activate": func(o *owner) twice {
			register(o)
			body := m{"code": o.letter("new-" + o.email), "password": password}
			return twice{as: o.visitor(o.t), body: body, refused: []int{400}, holds: home(o)}
		},
		"POST /auth/login": func(o *owner) twice {
			return twice{as: o.visitor(o.t), body: m{"email": o.email, "password": password}, holds: func(kept []call.Answer) {
				for _, a := range kept {
					o.session = a.Cookie("auth")
					o.wantStatus(200, "GET", "/user/self")
				}
			}}
		},
		"POST /auth/forgot": func(o *owner) twice {
			return twice{as: o.visitor(o.t), body: m{"email": o.email}, holds: func([]call.Answer) {
				o.redeem("/auth/forgot-return", func(token string) m { return reset(o, token) }, o.email, other, o.email)
			}}
		},
		"POST /auth/forgot-return": func(o *owner) twice {
			o.visitor(o.t).session201("/auth/forgot", m{"email": o.email})
			body := reset(o, o.letter(o.email))
			return twice{as: o.visitor(o.t), body: body, refused: []int{400}, holds: func([]call.Answer) { o.login(o.email, other) }}
		},
		"POST /auth/confirm-email": func(o *owner) twice {
			o.session201("/user/change-email", m{"email": "new-" + o.email, "password": password})
			body := m{"token": o.letter("new-" + o.email)}
			return twice{as: o.visitor(o.t), body: body, refused: []int{400}, holds: moved(o)}
		},
		"POST /user/change-email": func(o *owner) twice {
			return twice{body: m{"email": "new-" + o.email, "password": password}, holds: moved(o)}
		},
		"POST /user/change-password": func(o *owner) twice {
			body := m{"oldPassword": password, "newPassword": other, "repeatPassword": other}
			return twice{body: body, refused: []int{400, 401, 403}, holds: func([]call.Answer) { o.login(o.email, other) }}
		},
		"POST /user/logout": func(o *owner) twice {
			return twice{refused: []int{401}, holds: func([]call.Answer) { o.wantStatus(401, "GET", "/user/self") }}
		},
		"DELETE /user/sessions": func(o *owner) twice {
			ended := o.login(o.email, password)
			return twice{holds: func([]call.Answer) {
				o.wantStatus(200, "GET", "/user/self")
				o.session = ended
				o.wantStatus(401, "GET", "/user/self")
			}}
		},
		"POST /enterprise/create-user": func(o *owner) twice {
			now := time.Now().Unix()
			signed := sign(o.t, jose.HS256, []byte(enterpriseKey), m{
				"iat": now, "exp": now + 300, "jti": o.name, "id": 7, "name": "Ada", "email": "new-" + o.email, "saasName": "Engines",
			})
			return twice{as: o.visitor(o.t), body: m{"params": signed}, refused: []int{400, 401, 403}, holds: func(kept []call.Answer) {
				made := slices.DeleteFunc(fields(kept, "apiKey"), func(key string) bool { return key == "" })
				if o.wantKeys(made...); len(made) != 1 {
					o.t.Errorf("%d answers have a key, want one: the token counts once", len(made))
				}
			}}
		},
	}
}

func factorCases() map[string]prepare {
	// recovers fails the test unless each response has recovery codes, one of which signs the
	// person in.
	recovers := func(o *owner, email string) func(kept []call.Answer) {
		return func(kept []call.Answer) {
			for i, a := range kept {
				step := gjson.Parse(o.signIn(email, password).Body).Get("mfaToken").String()
				code := gjson.Get(a.Body, "recoveryCodes.0").String()
				in, err := o.visitor(o.t).send(i, "POST", "/auth/mfa/verify", m{"mfaToken": step, "recoveryCode": code})
				if err != nil || in.Cookie("auth") == "" {
					o.t.Errorf("a recovery code of answer %d: got %v, %v; want a session", i, in, err)
				}
			}
		}
	}
	// unenrolled returns a member who must have a second factor but has none, and the token of the
	// log-in.
	unenrolled := func(o *owner) (member *owner, token string) {
		o.enroll()
		member = o.member(tenancy.RoleAdmin)
		o.ask("PUT", "/user/mfa/policy", m{"required": true})
		member.session = ""
		return member, gjson.Parse(o.signIn(member.email, password).Body).Get("mfaToken").String()
	}
	return map[string]prepare{
		"POST /user/mfa/begin": func(o *owner) twice {
			return twice{body: m{"password": password}, holds: func(kept []call.Answer) {
				o.session201("/user/mfa/confirm", m{"code": codeOf(o.t, fields(kept, "secret")[0], 0)})
				if all := fields(kept, "secret"); len(all) == 2 && all[0] != all[1] {
					o.t.Errorf("the answers have the secrets of two factors, want one: only one can be confirmed")
				}
			}}
		},
		"POST /user/mfa/confirm": func(o *owner) twice {
			factor := o.session201("/user/mfa/begin", m{"password": password}).Get("secret").String()
			return twice{body: m{"code": codeOf(o.t, factor, 0)}, refused: []int{400, 401, 403}, holds: recovers(o, o.email)}
		},
		"POST /user/mfa/recovery-codes": func(o *owner) twice {
			factor, _ := o.enroll()
			return twice{body: m{"code": codeOf(o.t, factor, 1)}, refused: []int{400, 401, 403}, holds: recovers(o, o.email)}
		},
		"POST /user/mfa/disable": func(o *owner) twice {
			factor, _ := o.enroll()
			body := m{"password": password, "code": codeOf(o.t, factor, 1)}
			return twice{body: body, refused: []int{400, 401, 403}, holds: func([]call.Answer) {
				o.wantValue(o.get("/user/mfa/status"), "enabled", "false")
				o.login(o.email, password)
			}}
		},
		"PUT /user/mfa/policy": func(o *owner) twice {
			o.enroll()
			return twice{body: m{"required": true}, holds: func([]call.Answer) { o.wantValue(o.get("/user/mfa/policy"), "required", "true") }}
		},
		"POST /auth/mfa/verify": func(o *owner) twice {
			factor, _ := o.enroll()
			body := m{"mfaToken": gjson.Parse(o.signIn(o.email, password).Body).Get("mfaToken").String(), "code": codeOf(o.t, factor, 1)}
			return twice{as: o.visitor(o.t), body: body, refused: []int{400, 401, 403}, holds: func(kept []call.Answer) {
				for _, a := range kept {
					o.session = a.Cookie("auth")
					o.wantStatus(200, "GET", "/user/self")
				}
			}}
		},
		"POST /auth/mfa/enroll/begin": func(o *owner) twice {
			member, token := unenrolled(o)
			return twice{as: member, body: m{"mfaToken": token}, holds: func(kept []call.Answer) {
				member.session201("/auth/mfa/enroll/confirm", m{"mfaToken": token, "code": codeOf(o.t, fields(kept, "secret")[0], 0)})
				if all := fields(kept, "secret"); len(all) == 2 && all[0] != all[1] {
					o.t.Errorf("the answers have the secrets of two factors, want one: only one can be confirmed")
				}
			}}
		},
		"POST /auth/mfa/enroll/confirm": func(o *owner) twice {
			member, token := unenrolled(o)
			factor := member.session201("/auth/mfa/enroll/begin", m{"mfaToken": token}).Get("secret").String()
			body := m{"mfaToken": token, "code": codeOf(o.t, factor, 0)}
			return twice{as: member, body: body, refused: []int{400, 401, 403}, holds: recovers(o, member.email)}
		},
	}
}

func personCases() map[string]prepare {
	deletion := m{"confirm": "DELETE", "password": password}
	// restored fails the test unless the person is restored with the organization.
	restored := func(o *owner) {
		o.t.Helper()
		token := gjson.Parse(o.signIn(o.email, password).Body).Get("restoreToken").String()
		a, err := o.visitor(o.t).send(0, "POST", "/auth/restore", m{"token": token})
		must(o.t, err)
		o.session = a.Cookie("auth")
		o.wantValue(o.get("/user/organizations"), "#.deletedAt", "[null]")
		o.wantKeys(o.key)
	}
	return map[string]prepare{
		"POST /settings/delete-account": func(o *owner) twice {
			return twice{body: deletion, refused: []int{401}, holds: func([]call.Answer) { restored(o) }}
		},
		"POST /auth/restore": func(o *owner) twice {
			o.session201("/settings/delete-account", deletion)
			token := gjson.Parse(o.signIn(o.email, password).Body).Get("restoreToken").String()
			return twice{as: o.visitor(o.t), body: m{"token": token}, refused: []int{401}, holds: func(kept []call.Answer) {
				for _, a := range kept {
					o.session = a.Cookie("auth")
					o.wantValue(o.get("/user/organizations"), "#.deletedAt", "[null]")
					o.wantKeys(o.key)
				}
			}}
		},
		"POST /user/personal": func(o *owner) twice {
			return twice{body: m{"fullname": "Another Name"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/user/personal"), "name", "Another Name")
			}}
		},
		"POST /user/setup": func(o *owner) twice {
			return twice{body: m{"company": "Another Name", "fullname": "Ada Lovelace"}, refused: []int{400}, holds: func([]call.Answer) {
				o.wantValue(o.get("/user/organizations"), "#", "1")
			}}
		},
		"POST /user/email-notifications": func(o *owner) twice {
			body := m{"sendSuccessEmails": true, "sendFailureEmails": false, "sendStreakEmails": true}
			return twice{body: body, holds: func([]call.Answer) {
				o.wantValue(o.get("/user/email-notifications"), "sendFailureEmails", "false")
			}}
		},
		"DELETE /user/identities/{id}": func(o *owner) twice {
			identity := id.New[tenancy.IdentityTag]().String()
			o.exec(o.t, `insert into identity (id, issuer, subject, person_id, provider)
				values ($1, 'https://idp.test', $2, $3, 'GENERIC')`, identity, o.name, o.person)
			return twice{ids: []string{identity}, holds: func([]call.Answer) { o.wantGone(o.get("/user/identities"), identity) }}
		},
		"POST /user/impersonate": func(o *owner) twice {
			other := o.visitor(o.t)
			other.session = o.session
			o.exec(o.t, `update person set instance_admin = true where id = $1`, o.person)
			member := o.processes.owner(o.t)
			membership := o.get("/user/impersonate?name=" + member.name).Get("0.id").String()
			return twice{body: m{"id": membership}, holds: func(kept []call.Answer) {
				for _, a := range kept {
					self := o.ask("GET", "/user/self", nil, "impersonate", a.Cookie("impersonate"))
					o.wantValue(self, "impersonate", "true")
				}
			}}
		},
		"POST /user/change-org": func(o *owner) twice {
			return twice{body: m{"id": o.org}, holds: func(kept []call.Answer) {
				for _, a := range kept {
					if got := a.Cookie("showorg"); got != o.org {
						o.t.Errorf("got the organization %q, want %s", got, o.org)
					}
				}
			}}
		},
		"POST /user/organizations": func(o *owner) twice {
			return twice{body: m{"name": "Another One"}, holds: func(kept []call.Answer) { o.wantIDs(kept, o.get("/user/organizations")) }}
		},
		"POST /user/join-org": func(o *owner) twice {
			other := o.processes.owner(o.t)
			token := o.invite(m{"role": "USER", "sendEmail": false})
			return twice{as: other, body: m{"org": token}, refused: []int{400}, holds: func([]call.Answer) {
				o.wantValue(o.get("/settings/team"), "users.#(user.email==\""+other.email+"\").role", "USER")
				o.wantValue(o.get("/settings/team"), "users.#", "2")
			}}
		},
		"POST /user/restore-organization": func(o *owner) twice {
			o.session201("/settings/delete-organization", deletion)
			return twice{body: m{"id": o.org}, holds: func([]call.Answer) {
				o.wantValue(o.get("/user/organizations"), "#.deletedAt", "[null]")
				o.wantKeys(o.key)
			}}
		},
		"POST /settings/delete-organization": func(o *owner) twice {
			return twice{body: deletion, refused: []int{403}, holds: func([]call.Answer) {
				o.wantStatus(401, "GET", "/public/v1/is-connected")
				o.session201("/user/restore-organization", m{"id": o.org})
				o.wantKeys(o.key)
			}}
		},
	}
}

// invite creates an invitation and returns the token of its link.
func (o *owner) invite(body m) string {
	o.t.Helper()
	return tokenIn(o.session201("/settings/team", body).Get("url").String())
}

func tokenIn(address string) string { return address[strings.LastIndex(address, "=")+1:] }

// wantKeys fails the test unless the keys work on both processes.
func (o *owner) wantKeys(keys ...string) {
	o.t.Helper()
	for i, key := range keys {
		other := *o
		other.t, other.key = o.t, key
		if key == "" {
			o.t.Errorf("key %d is empty", i)
			continue
		}
		eventually(o.t, "the key", func() bool {
			a, err := other.send(0, "GET", "/public/v1/is-connected", nil)
			return err == nil && a.Status != http.StatusServiceUnavailable
		})
		other.wantStatus(200, "GET", "/public/v1/is-connected")
	}
}

func organizationCases() map[string]prepare {
	rotation := func(body func(key string) m) prepare {
		return func(o *owner) twice {
			old := gjson.Get(o.get("/settings/api-keys").Raw, "0.id").String()
			return twice{body: body(old), holds: func(kept []call.Answer) {
				o.wantKeys(append(fields(kept, "apiKey"), o.key)...)
				list := o.get("/settings/api-keys")
				for _, id := range fields(kept, "id") {
					o.wantValue(list, `#(id=="`+id+`").expiresAt`, "")
				}
			}}
		}
	}
	return map[string]prepare{
		"POST /settings/api-keys": func(o *owner) twice {
			return twice{body: m{"name": "new"}, holds: func(kept []call.Answer) {
				o.wantIDs(kept, o.get("/settings/api-keys"))
				o.wantKeys(fields(kept, "key")...)
			}}
		},
		"PUT /settings/api-keys/{id}": func(o *owner) twice {
			return twice{ids: []string{o.get("/settings/api-keys").Get("0.id").String()}, body: m{"name": "renamed"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/settings/api-keys"), "0.name", "renamed")
				o.wantKeys(o.key)
			}}
		},
		"DELETE /settings/api-keys/{id}": func(o *owner) twice {
			key := o.get("/settings/api-keys").Get("0.id").String()
			return twice{ids: []string{key}, holds: func([]call.Answer) {
				o.wantGone(o.get("/settings/api-keys"), key)
				o.wantStatus(401, "GET", "/public/v1/is-connected")
			}}
		},
		"POST /user/api-key/rotate, with its id":    rotation(func(key string) m { return m{"id": key, "overlapHours": 24} }),
		"POST /user/api-key/rotate, without its id": rotation(func(string) m { return m{"overlapHours": 24} }),
		"POST /settings/team": func(o *owner) twice {
			return twice{body: m{"role": "USER", "sendEmail": false}, holds: func(kept []call.Answer) {
				o.wantIDs(kept, o.get("/settings/invitations"))
				for _, address := range fields(kept, "url") {
					other := o.processes.owner(o.t)
					other.wantValue(other.session201("/user/join-org", m{"org": tokenIn(address)}), "id", o.org)
				}
			}}
		},
		"POST /settings/team, to an address": func(o *owner) twice {
			other := o.processes.owner(o.t)
			return twice{body: m{"role": "USER", "email": other.email, "sendEmail": false}, holds: func(kept []call.Answer) {
				o.wantValue(o.get("/settings/invitations"), "#", "1")
				joined := 0
				for i, address := range fields(kept, "url") {
					a, err := other.send(i, "POST", "/user/join-org", m{"org": tokenIn(address)})
					must(o.t, err)
					if gjson.Get(a.Body, "id").String() == o.org {
						joined++
					}
				}
				if joined == 0 {
					o.t.Error("no link lets the person join, want the last one to")
				}
			}}
		},
		"DELETE /settings/invitations/{id}": func(o *owner) twice {
			made := o.session201("/settings/team", m{"role": "USER", "sendEmail": false})
			return twice{ids: []string{made.Get("id").String()}, holds: func([]call.Answer) {
				o.wantValue(o.get("/settings/invitations"), "#", "0")
				other := o.processes.owner(o.t)
				if a, err := other.send(0, "POST", "/user/join-org", m{"org": tokenIn(made.Get("url").String())}); err != nil || gjson.Get(a.Body, "id").String() == o.org {
					o.t.Errorf("joining with a revoked link: got %v, %v; want a refusal", a, err)
				}
			}}
		},
		"DELETE /settings/team/{id}": func(o *owner) twice {
			other := o.member(tenancy.RoleAdmin)
			return twice{ids: []string{other.person}, query: "?revokeKeys=true", holds: func([]call.Answer) {
				o.wantGone(o.get("/settings/team"), other.email)
			}}
		},
		"PUT /settings/team/{id}/role": func(o *owner) twice {
			other := o.member(tenancy.RoleUser)
			return twice{ids: []string{other.person}, body: m{"role": "ADMIN"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/settings/team"), "users.#(user.id==\""+other.person+"\").role", "ADMIN")
			}}
		},
		"PUT /settings/team/{id}/role, to hand over": func(o *owner) twice {
			other := o.member(tenancy.RoleAdmin)
			body := m{"role": "SUPERADMIN", "password": password}
			return twice{ids: []string{other.person}, body: body, refused: []int{403}, holds: func([]call.Answer) {
				o.wantValue(o.get("/settings/team"), "users.#(role==\"SUPERADMIN\")#.user.id", `["`+other.person+`"]`)
			}}
		},
		"PUT /settings/organization": func(o *owner) twice {
			return twice{body: m{"description": "changed"}, holds: func([]call.Answer) {
				o.wantValue(o.get("/settings/organization"), "description", "changed")
			}}
		},
		"POST /settings/provider-credentials/{provider}": func(o *owner) twice {
			body := m{"credentials": m{"clientId": "own", "clientSecret": "own secret"}}
			return twice{ids: []string{"sandbox-oauth"}, body: body, holds: func([]call.Answer) {
				o.wantValue(o.get("/settings/provider-credentials/sandbox-oauth"), "source", "organization")
			}}
		},
		"DELETE /settings/provider-credentials/{provider}": func(o *owner) twice {
			o.session201("/settings/provider-credentials/sandbox-oauth", m{"credentials": m{"clientId": "own", "clientSecret": "own secret"}})
			return twice{ids: []string{"sandbox-oauth"}, holds: func([]call.Answer) {
				o.wantGone(o.get("/settings/provider-credentials/sandbox-oauth"), `"organization"`)
			}}
		},
	}
}
