package oauth

import (
	"context"
	"html/template"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/text"
	"crier/tenancy"
)

// GrantRecord is a person's permission for an app to act for them in one organization.
type GrantRecord struct {
	ID           string            `json:"id"`
	App          GrantedApp        `json:"app"`
	Organization GrantOrganization `json:"organization"`
	Scopes       []string          `json:"scopes" enum:"mcp:read,mcp:write,offline_access"`
	Limits       GrantLimits       `json:"limits"`
	CreatedAt    string            `json:"createdAt" format:"date-time"`
	LastUsedAt   *string           `json:"lastUsedAt" nullable:"true" format:"date-time" doc:"When the app last made a request, to the minute; null if it never did."`
	// Person is set in the organization's list.
	Person *GrantPerson `json:"person,omitempty" doc:"The person for whom the app acts. Absent in the list of your own apps."`
}

// GrantedApp is the app of a grant.
type GrantedApp struct {
	ClientID string `json:"clientId"`
	Name     string `json:"name"`
	URI      string `json:"uri,omitempty"`
	Kind     string `json:"kind" enum:"registered,document,static"`
	Verified string `json:"verifiedHost,omitempty" doc:"Host of the document that describes the client; absent if there is none."`
}

// GrantOrganization is the organization of a grant.
type GrantOrganization struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// GrantPerson is the person who approved a grant.
type GrantPerson struct {
	ID    string `json:"id"`
	Email string `json:"email"`
}

// GrantLimits narrows what an app may do.
type GrantLimits struct {
	Channels    []string `json:"channels" doc:"Ids of channels. If channels and customers are empty, the app may use all channels."`
	Customers   []string `json:"customers" doc:"Ids of groups whose channels the app may use."`
	MustAsk     bool     `json:"mustAsk" doc:"Whether the app may only write drafts, which a person must approve."`
	PostsPerDay int      `json:"postsPerDay" doc:"Maximum number of posts that the app may queue per day; 0 means no limit."`
	EndsAt      *string  `json:"endsAt" nullable:"true" format:"date-time" doc:"When access ends; null if only a revocation ends it."`
}

func newGrantRecord(g oidc.Grant) GrantRecord {
	out := GrantRecord{
		ID: g.ID.String(), Organization: GrantOrganization{ID: g.Org.String(), Name: g.OrgName},
		Scopes: g.Scopes.Names(),
		App: GrantedApp{
			ClientID: g.Client.ClientID, Name: displayName(g.Client), URI: g.Client.URI, Kind: string(g.Client.Kind),
			Verified: verifiedHost(g.Client),
		},
		Limits: GrantLimits{
			Channels: append([]string{}, g.Limits.Channels...), Customers: append([]string{}, g.Limits.Customers...),
			MustAsk: g.Limits.MustAsk, PostsPerDay: g.Limits.PostsPerDay, EndsAt: record.OptionalTime(g.Limits.EndsAt),
		},
		CreatedAt: record.FormatTime(g.Created), LastUsedAt: record.OptionalTime(g.LastUsed),
	}
	return out
}

type grantsOutput struct{ Body []GrantRecord }

// ListOwn returns the endpoint that lists the apps that may act for the person.
func (a *grants) ListOwn() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Agents", "List the apps that may act for you"),
		"The list contains the apps that you have approved in all organizations, newest first."), a.listOwn)
}

func (a *grants) listOwn(ctx context.Context, _ *struct{}) (*grantsOutput, error) {
	if err := available("oauth.listOwn", a.deps.Grants); err != nil {
		return nil, err
	}
	list, err := a.deps.Grants.List(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &grantsOutput{Body: []GrantRecord{}}
	for _, g := range list {
		out.Body = append(out.Body, newGrantRecord(g))
	}
	return out, nil
}

// ListAll returns the endpoint that lists the apps that may act for any member of the organization.
func (a *grants) ListAll() route.Endpoint {
	return route.JSON(route.Describe("Agents", "List the apps that may act for members of the organization"), a.listAll)
}

func (a *grants) listAll(ctx context.Context, _ *struct{}) (*grantsOutput, error) {
	if err := available("oauth.listAll", a.deps.Grants); err != nil {
		return nil, err
	}
	list, err := a.deps.Grants.ListAll(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &grantsOutput{Body: []GrantRecord{}}
	for _, g := range list {
		shown := newGrantRecord(g)
		shown.Person = &GrantPerson{ID: g.Person.String(), Email: g.Email}
		out.Body = append(out.Body, shown)
	}
	return out, nil
}

// RevokeOwn returns the endpoint that ends an app's access for the person.
func (a *grants) RevokeOwn() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Agents", "Revoke an app's access for you", 404),
		"All of the app's tokens for you stop working at once."), a.revoke)
}

// RevokeAny returns the endpoint that lets an administrator end an app's access for a member.
func (a *grants) RevokeAny() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Agents", "Revoke an app's access for a member", 404),
		"All of the app's tokens for the member stop working at once."), a.revoke)
}

func (a *grants) revoke(ctx context.Context, in *record.PathID) (*record.IDOutput, error) {
	if err := available("oauth.revoke", a.deps.Grants); err != nil {
		return nil, err
	}
	if err := a.deps.Grants.Revoke(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return &record.IDOutput{Body: record.IDResponse(*in)}, nil
}

// appsView is the data for the page on which people see and revoke what they have approved.
type appsView struct {
	frame
	Person string
	Action template.URL
	Apps   []appShown
}

type appShown struct {
	ID, Name, Verified, Organization, Can, Created, LastUsed string
	Limits                                                   []string
}

// AppsPage returns the endpoint for the page that lists the person's apps in all organizations.
func (a *grants) AppsPage() route.Endpoint {
	return route.Raw(route.Describe("Agents", "Get the page that lists your apps", 403, 429), a.getApps,
		page.Answer("The page, or the sign-in page."))
}

// RevokeOnPage returns the endpoint to which the page's form is submitted.
func (a *grants) RevokeOnPage() route.Endpoint {
	d := route.Describe("Agents", "Revoke an app's access with the form on the page", 400, 403, 404, 413, 429)
	d.RequestBody = formBody("grant")
	return route.Raw(d, a.revokeOnPage, page.Answer("The page, if the access could not be revoked."),
		route.Content(http.StatusSeeOther, "The access has been revoked. The browser returns to the page.", "", nil))
}

func (a *grants) getApps(c *fiber.Ctx) error {
	p, done, err := a.pageVisitor(c, pageApps)
	if done || err != nil {
		return err
	}
	return a.showApps(c, http.StatusOK, p, "")
}

func (a *grants) revokeOnPage(c *fiber.Ctx) error {
	p, done, err := a.pageVisitor(c, pageApps)
	if done || err != nil {
		return err
	}
	form, err := readForm(c)
	if err != nil {
		return a.showApps(c, http.StatusBadRequest, p, "The form could not be read. Try again.")
	}
	// Do not require access to the grant's organization, because the person may have lost that
	// access.
	err = available("oauth.revokeOnPage", a.deps.Grants)
	if err == nil {
		err = a.deps.Grants.Revoke(contextOf(c), p, form.Get("grant"))
	}
	if err != nil && !fault.Is(err, fault.NotFound) { // it may have been revoked on another page
		status, message := page.Problem(c, err)
		return a.showApps(c, status, p, message)
	}
	a.appsPage.SetHeaders(c)
	return c.Redirect(a.path(appsPath, query{}), http.StatusSeeOther)
}

func (a *grants) showApps(c *fiber.Ctx, status int, p tenancy.Principal, problem string) error {
	view := appsView{
		frame: frame{Title: "Apps that can act for you", Problem: problem}, Person: p.Name,
		Action: a.link(appsPath, query{}),
	}
	if err := available("oauth.showApps", a.deps.Grants); err != nil {
		return a.showRefusal(c, err)
	}
	list, err := a.deps.Grants.List(contextOf(c), p)
	if err != nil {
		return a.showRefusal(c, err)
	}
	for _, g := range list {
		view.Apps = append(view.Apps, newAppShown(g))
	}
	return a.send(c, a.appsPage, status, view)
}

func newAppShown(g oidc.Grant) appShown {
	out := appShown{
		ID: g.ID.String(), Name: displayName(g.Client), Verified: verifiedHost(g.Client),
		Organization: g.OrgName, Can: "see everything that you can see", Created: g.Created.UTC().Format(page.Time),
	}
	if g.Scopes.Writes() {
		out.Can = "see, create, change and publish posts"
	}
	if g.LastUsed != nil {
		out.LastUsed = g.LastUsed.UTC().Format(page.Time)
	}
	l := g.Limits
	if n := len(l.Channels); n > 0 {
		out.Limits = append(out.Limits, "Limited to "+text.Count(n, "channel")+".")
	}
	if n := len(l.Customers); n > 0 {
		out.Limits = append(out.Limits, "Limited to "+text.Count(n, "group")+" of channels.")
	}
	if l.MustAsk {
		out.Limits = append(out.Limits, "Writes drafts only. A person must approve each post.")
	}
	if l.PostsPerDay > 0 {
		out.Limits = append(out.Limits, "At most "+text.Count(l.PostsPerDay, "post")+" a day.")
	}
	if l.EndsAt != nil {
		out.Limits = append(out.Limits, "Ends on "+l.EndsAt.UTC().Format(page.Time)+".")
	}
	return out
}
