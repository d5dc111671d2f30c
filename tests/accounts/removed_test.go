package accounts

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"crier/platform/clock"
	"crier/tenancy"
	"crier/tests/call"
)

// making is an administrator who is being removed, with the keys, webhooks and invitations that
// responses confirmed.
type making struct {
	*owner
	path string // the receiver's path for the member's webhooks

	mu                          sync.Mutex
	keys, webhooks, invitations []gjson.Result
	refused                     int
	failed                      []error
}

// made records a response: it appends what was created to list, or counts a refusal or a failure.
func (k *making) made(list *[]gjson.Result, a call.Answer, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.failed = append(k.failed, err)
	case a.Status >= 500 && a.Status != http.StatusServiceUnavailable:
		k.failed = append(k.failed, fmt.Errorf("an answer of a request while the member is removed: %v", a))
	case a.Status >= 300:
		k.refused++
	default:
		*list = append(*list, gjson.Parse(a.Body))
	}
}

// lastKey returns the member's newest key, or "".
func (k *making) lastKey() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) == 0 {
		return ""
	}
	last := k.keys[len(k.keys)-1]
	return last.Get("key").String() + last.Get("apiKey").String()
}

// request sends the i-th request. The processes take turns.
func (k *making) request(i int) {
	node, key := i/5%2, k.lastKey()
	hook := m{"name": fmt.Sprintf("hook %d", i), "url": k.receiver + k.path, "integrations": []any{}}
	switch i % 5 {
	case 0:
		a, err := k.send(node, http.MethodPost, "/settings/api-keys", m{"name": fmt.Sprintf("key %d", i)})
		k.made(&k.keys, a, err)
	case 1:
		a, err := k.send(node, http.MethodPost, "/webhooks", hook)
		k.made(&k.webhooks, a, err)
	case 2:
		a, err := k.send(node, http.MethodPost, "/settings/team", m{"role": "ADMIN", "sendEmail": false})
		k.made(&k.invitations, a, err)
	case 3:
		a, err := k.send(node, http.MethodPost, "/public/v1/webhooks", hook, "Authorization", key)
		k.made(&k.webhooks, a, err)
	case 4:
		a, err := k.send(node, http.MethodPost, "/user/api-key/rotate", m{"overlapHours": 24})
		k.made(&k.keys, a, err)
	}
}

// makes sends requests at a rate until stop is closed, without waiting for earlier ones, and then
// waits for all responses.
func (k *making) makes(perSecond int, stop <-chan struct{}) {
	var sent sync.WaitGroup
	defer sent.Wait()
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := 0; ; i++ {
		sent.Go(func() { k.request(i) })
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// TestRemoved_KeepsNothing removes and demotes administrators while they create keys, webhooks and
// invitations on two processes.
//
// The response of the removal must name everything whose creation was confirmed to them. None of it
// may work, be listed or come back with a new membership.
func TestRemoved_KeepsNothing(t *testing.T) {
	t.Parallel()
	p := startProcesses(t)
	rounds := 30
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		for _, perSecond := range []int{10, 100} {
			t.Run(fmt.Sprintf("round %d at %d a second", round, perSecond), func(t *testing.T) {
				t.Parallel()
				o := p.owner(t)
				channel := o.channel()
				member := &making{owner: o.member(tenancy.RoleAdmin)}
				member.path = "/" + member.name
				stop, ended := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					member.makes(perSecond, stop)
				}()
				must(t, clock.Sleep(t.Context(), time.Duration(100+13*round)*time.Millisecond))
				answer := o.removes(member, round%2 == 0)
				must(t, clock.Sleep(t.Context(), 200*time.Millisecond))
				close(stop)
				<-ended
				for _, err := range member.failed {
					t.Error(err)
				}
				o.wantNamed(answer, member)
				o.wantNothingOf(member)
				o.exec(t, `insert into member (org_id, person_id, role, created_at) values ($1, $2, 'ADMIN', now())
					on conflict (org_id, person_id) do update set role = 'ADMIN'`, o.org, member.person)
				o.wantNothingOf(member)
				o.wantNotCalled(member, channel)
			})
		}
	}
}

// removes ends the membership, or only its rights, and returns the response.
func (o *owner) removes(member *making, whole bool) gjson.Result {
	o.t.Helper()
	if whole {
		return o.ask(http.MethodDelete, "/settings/team/"+member.person+"?revokeKeys=true", nil)
	}
	return o.ask(http.MethodPut, "/settings/team/"+member.person+"/role", m{"role": "USER", "revokeKeys": true})
}

// wantNamed checks that the response of the removal names everything whose creation was confirmed
// to the member.
func (o *owner) wantNamed(answer gjson.Result, member *making) {
	o.t.Helper()
	for name, made := range map[string][]gjson.Result{
		"keys": member.keys, "webhooks": member.webhooks, "invitations": member.invitations,
	} {
		var want, got []string
		for _, x := range made {
			want = append(want, x.Get("id").String())
		}
		for _, x := range answer.Get(name + ".#.id").Array() {
			got = append(got, x.String())
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			o.t.Errorf("%s: the removal named %q, want %q", name, got, want)
		}
	}
}

// wantNothingOf checks that nothing that the member has created works or is listed.
func (o *owner) wantNothingOf(member *making) {
	o.t.Helper()
	for _, x := range member.keys {
		key := x.Get("key").String() + x.Get("apiKey").String()
		if key == "" {
			o.t.Errorf("%v has no key", x)
		}
		o.wantStatus(http.StatusUnauthorized, http.MethodGet, "/public/v1/is-connected", "Authorization", key)
	}
	o.wantValue(o.get("/settings/api-keys"), "#", "1") // the owner's
	o.wantValue(o.get("/webhooks"), "#", "0")
	o.wantValue(o.get("/settings/invitations"), "#", "0")
	for i, x := range member.invitations {
		other := o.visitor(o.t)
		other.insertPerson(other.email)
		other.session = other.login(other.email, password)
		a, err := other.send(i%2, http.MethodPost, "/user/join-org", m{"org": tokenIn(x.Get("url").String())})
		must(o.t, err)
		if gjson.Get(a.Body, "id").String() == o.org {
			o.t.Errorf("joining with an invitation of the removed member: got %v, want a refusal", a)
		}
	}
}

// wantNotCalled checks that an event reaches none of the member's endpoints. A call to the owner's
// endpoint shows that the event was sent.
func (o *owner) wantNotCalled(member *making, channel string) {
	o.t.Helper()
	o.webhook()
	before := len(o.received.to(member.path))
	post := o.post201("/posts", o.newPost("draft", channel)).Get("0.postId").String()
	o.post201("/posts/"+post+"/request-approval", m{})
	eventually(o.t, "the call of the owner's webhook", func() bool { return len(o.received.to("/"+o.name)) > 0 })
	if after := len(o.received.to(member.path)); after != before {
		o.t.Errorf("the removed member's endpoints were called %d times", after-before)
	}
}

// TestRemoved_ChangedWebhooksAreDeleted checks that a removal deletes the webhooks whose URL or
// secret the member has changed, because the member may be able to read what they receive.
func TestRemoved_ChangedWebhooksAreDeleted(t *testing.T) {
	t.Parallel()
	p := common(t)
	for name, bend := range map[string]func(member *owner, hook string){
		"by the URL": func(member *owner, hook string) {
			member.ask(http.MethodPut, "/webhooks", m{"id": hook, "url": p.receiver + "/bent"})
		},
		"by the URL, with a key": func(member *owner, hook string) {
			member.key = member.session201("/settings/api-keys", m{"name": "of the member"}).Get("key").String()
			member.ask(http.MethodPut, "/public/v1/webhooks/"+hook, m{"url": p.receiver + "/bent"})
		},
		"by the secret": func(member *owner, hook string) {
			member.ask(http.MethodPost, "/webhooks/"+hook+"/rotate-secret", m{})
		},
	} {
		o := p.owner(t)
		kept, _ := o.webhook()
		hook, _ := o.webhook()
		member := o.member(tenancy.RoleAdmin)
		bend(member, hook)
		answer := o.removes(&making{owner: member}, true)
		if got := answer.Get("webhooks.#.id").String(); got != `["`+hook+`"]` {
			t.Errorf("%s: the removal named %s, want %s", name, got, hook)
		}
		if got := o.get("/webhooks").Get("#.id").String(); got != `["`+kept+`"]` {
			t.Errorf("%s: the webhooks are %s, want %s", name, got, kept)
		}
	}
}

// TestRemoved_LeavingFirstKeepsNothing checks that a person who has already left can still be
// removed.
func TestRemoved_LeavingFirstKeepsNothing(t *testing.T) {
	t.Parallel()
	o := common(t).owner(t)
	member := o.member(tenancy.RoleAdmin)
	made := member.session201("/settings/api-keys", m{"name": "of the member"})
	member.ask(http.MethodDelete, "/settings/team/"+member.person, nil)
	list := o.get("/settings/api-keys")
	creator := list.Get(`#(id=="` + made.Get("id").String() + `").createdBy`)
	if creator.Get("id").String() != member.person || creator.Get("email").String() != "" {
		t.Errorf("the creator of the remaining key is %s, want only the id of the person", creator)
	}
	path := "/settings/team/" + member.person + "?revokeKeys=true"
	if got := o.ask(http.MethodDelete, path, nil).Get("keys.#.id").String(); got != `["`+made.Get("id").String()+`"]` {
		t.Errorf("the removal named the keys %s, want %s", got, made.Get("id"))
	}
	o.wantStatus(http.StatusUnauthorized, http.MethodGet, "/public/v1/is-connected", "Authorization", made.Get("key").String())
	o.wantStatus(http.StatusNotFound, http.MethodDelete, path)
}

// TestRemoved_ConnectEndsWithItsSession checks that a connect cannot be finished after its session
// has ended. A password change, for example, ends a stolen session.
func TestRemoved_ConnectEndsWithItsSession(t *testing.T) {
	t.Parallel()
	o := common(t).owner(t)
	finish := o.connect()
	o.ask(http.MethodPost, "/user/logout", m{})
	a, err := o.send(0, http.MethodPost, "/integrations/social-connect/sandbox", finish)
	must(t, err)
	if a.Status < 400 || a.Status > 499 {
		t.Errorf("a connect whose session has ended: got %v, want a refusal", a)
	}
}

// TestRemoved_ForeignOrganizationStartsNoConnect checks that a browser that names an organization
// of which the person is not a member does not start a connect for another one.
func TestRemoved_ForeignOrganizationStartsNoConnect(t *testing.T) {
	t.Parallel()
	o := common(t).owner(t)
	other := o.processes.owner(t)
	o.wantStatus(http.StatusForbidden, http.MethodGet, "/integrations/social/sandbox", "showorg", other.org)
	o.wantStatus(http.StatusOK, http.MethodGet, "/integrations/social/sandbox")
}

// reviewLinks returns the tokens of the review links that were mailed to an address.
func (o *owner) reviewLinks(email string) (tokens []string) {
	for _, msg := range o.mail.Messages() {
		if _, rest, found := strings.Cut(msg.Text, "/review/"); found && msg.To == email {
			tokens = append(tokens, strings.Fields(rest)[0])
		}
	}
	return tokens
}

// answers approves a post as a guest, using a review link.
func (o *owner) answers(node int, token, name string) call.Answer {
	o.t.Helper()
	a, err := o.visitor(o.t).send(node, http.MethodPost, "/public/approval-review/"+token+"/resolve", m{"action": "approve", "reviewerName": name})
	must(o.t, err)
	return a
}

// sharedLink returns the token of the review link that a member is shown for a post.
func (o *owner) sharedLink(post string) string {
	o.t.Helper()
	address := o.get("/approvals").Get(`approvals.#(postId=="` + post + `").reviewUrl`).String()
	if address == "" {
		o.t.Fatalf("no review link is shown for the post %s", post)
	}
	return path.Base(address)
}

// TestRemoved_ReviewLinksEnd checks that a former member cannot approve anything with a link that
// was shown or mailed to them.
func TestRemoved_ReviewLinksEnd(t *testing.T) {
	t.Parallel()
	o := common(t).owner(t)
	shown, kept := o.member(tenancy.RoleUser), o.member(tenancy.RoleUser)
	asks := o.member(tenancy.RoleAdmin)
	asks.key = asks.session201("/settings/api-keys", m{"name": "of the member"}).Get("key").String()
	local, domain, _ := strings.Cut(asks.email, "@")
	tagged := local + "+r@" + domain
	post := func(by *owner, request m) string {
		post := o.post("draft")
		by.post201("/posts/"+post+"/request-approval", request)
		return post
	}
	shared := post(o, m{"autoSchedule": true})
	link, other := shown.sharedLink(shared), kept.sharedLink(shared)
	if link == other || link == kept.sharedLink(post(o, m{})) {
		t.Error("two review links are the same")
	}
	own := post(asks, m{"autoSchedule": true, "reviewerEmail": "of-" + asks.email})
	asksSelf, err := asks.send(0, http.MethodPost, "/public/v1/posts/"+o.post("draft")+"/request-approval", m{"reviewerEmail": tagged},
		"Authorization", asks.key)
	must(t, err)
	if asksSelf.Status != http.StatusBadRequest {
		t.Errorf("a request to the requester's own mailbox: got %v, want 400", asksSelf)
	}
	mailed := post(o, m{"autoSchedule": true, "reviewerEmail": tagged})
	links := func(email string) string {
		eventually(t, "the mail to the reviewer", func() bool { return len(o.reviewLinks(email)) == 1 })
		return o.reviewLinks(email)[0]
	}
	ownLink, mailedLink := links("of-"+asks.email), links(tagged)

	o.removes(&making{owner: shown}, true)
	if got := o.answers(0, link, o.email); got.Status != http.StatusNotFound {
		t.Errorf("the link of a removed member: got %v, want 404", got)
	}
	if got := o.answers(1, other[:44]+link[44:], "x"); got.Status != http.StatusNotFound {
		t.Errorf("a link with the proof of another link: got %v, want 404", got)
	}
	removal := o.removes(&making{owner: asks}, true)
	var named []string
	for _, ended := range removal.Get("approvals.#.postId").Array() {
		named = append(named, ended.String())
	}
	if !slices.Equal(named, []string{own, mailed}) {
		t.Errorf("the removal named the posts %v, want %s and %s", named, own, mailed)
	}
	for name, link := range map[string]string{"of the member's own request": ownLink, "mailed to the member": mailedLink} {
		for node := range 2 {
			if got := o.answers(node, link, ""); got.Status != http.StatusGone {
				t.Errorf("the link %s: got %v, want 410", name, got)
			}
		}
	}
	if got := o.answers(0, other, o.email); got.Status != http.StatusCreated {
		t.Errorf("the link of a member: got %v, want 201", got)
	}
	answered := o.get("/approvals").Get(`approvals.#(postId=="` + shared + `")`)
	if !answered.Get("guest").Bool() || answered.Get("reviewerName").String() != o.email {
		t.Errorf("a guest answered with a member's name: got %s, want an answer that is marked as a guest's", answered)
	}
}

// TestRemoved_CredentialsAreNamed checks that a demotion and a removal list the provider
// credentials that the member entered, because the member may know the secret.
func TestRemoved_CredentialsAreNamed(t *testing.T) {
	t.Parallel()
	o := common(t).owner(t)
	credentials := m{"credentials": m{"clientId": "of the member", "clientSecret": "known to the member"}}
	member := o.member(tenancy.RoleAdmin)
	member.ask(http.MethodPost, "/settings/provider-credentials/sandbox-oauth", credentials)
	answer := o.ask(http.MethodPut, "/settings/team/"+member.person+"/role", m{"role": "USER"})
	o.wantValue(answer, "providerCredentials.#", "1")
	answer = o.removes(&making{owner: member}, true)
	o.wantValue(answer, "providerCredentials.#", "1")
	o.ask(http.MethodPost, "/settings/provider-credentials/sandbox-oauth", credentials)
	o.wantStatus(http.StatusNotFound, http.MethodDelete, "/settings/team/"+member.person)
}
