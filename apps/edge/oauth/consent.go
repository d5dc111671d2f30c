package oauth

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/text"
	"crier/tenancy"
)

// maxListed is the maximum number of channels, and of customers, that the consent page lists in
// addition to those chosen before. If there are more channels, the page lists only those chosen
// before.
const maxListed = 200

// consentForm holds the request that the consent page shows and what the person has entered so far.
type consentForm struct {
	request oidc.AuthorizationRequest
	query   query
	// device is the code that the person typed, or empty if no device requests access.
	device string
	// answer is nil when the page is first shown.
	answer  *answer
	problem string
	errors  map[string]string
	// organization is the id of the organization that the person chose, or empty if the person has
	// not chosen one.
	organization string
}

type consentView struct {
	frame
	Client, Home, Verified, Destination string
	Person, Organization                string
	// Blocked explains why the person cannot approve for the organization.
	Blocked string
	// MustEnroll is set if a new sign-in would let the person approve.
	MustEnroll bool
	Others     []orgChoice
	// Existing is set if the person has already approved the client for the organization.
	Existing bool
	// Switch is the URL for signing in again, and Apps is the URL of the page on which people
	// revoke access.
	Switch          template.URL
	Apps            string
	Action          template.URL
	Ticket, OrgID   string
	UserCode        string
	CanWrite, Write bool
	Customers       []choice
	Channels        []choice
	TooMany         bool
	MustAsk         bool
	PostsPerDay     string
	EndsAt          string
	Errors          map[string]string
	// Open expands the limits.
	Open bool
}

type orgChoice struct {
	Name string
	URL  template.URL
}

type choice struct {
	ID, Name, Detail string
	Checked          bool
}

// showConsent responds with the consent page. It stores nothing.
func (a *consents) showConsent(c *fiber.Ctx, status int, p tenancy.Principal, f consentForm) error {
	view := newConsentView(p, f)
	view.Apps = a.deps.BaseURL + appsPath
	if f.device == "" {
		view.Action = a.link(authorizePath, f.query.without(organizationParameter))
		view.Switch = a.link(authorizePath, f.query.without(organizationParameter).with("prompt", "login"))
	} else {
		view.Action, view.Switch = a.link(devicePath, query{}), a.link(devicePath, query{})
	}
	own, err := a.inOrganization(c, f.organization)
	if fault.Is(err, fault.Forbidden) {
		_, view.Blocked = page.Problem(c, err)
		view.MustEnroll = own.Access == tenancy.AccessEnroll
	} else if err != nil {
		return a.showRefusal(c, err)
	}
	if err := a.addOrganizations(c, &view, own, f); err != nil {
		return a.showRefusal(c, err)
	}
	if view.Blocked == "" {
		if err := a.addExisting(c, &view, own, &f); err != nil {
			return a.showRefusal(c, err)
		}
		if err := a.addChoices(c, &view, own, f); err != nil {
			return a.showRefusal(c, err)
		}
	}
	return a.send(c, a.consentPage, status, view)
}

func newConsentView(p tenancy.Principal, f consentForm) consentView {
	r := f.request
	view := consentView{
		frame:  frame{Title: "Let " + displayName(r.Client) + " use your account?", Problem: f.problem},
		Client: displayName(r.Client), Home: hostOf(r.Client.URI), Verified: verifiedHost(r.Client),
		Destination: destination(r.RedirectURI), Person: p.Name, UserCode: f.device,
		CanWrite: r.Scopes.Writes(), Write: true, Errors: f.errors,
	}
	if f.device != "" {
		view.Destination = "the device that shows the code " + f.device
		view.Verified = "" // a device sends the id of any client, and no redirect URI proves it
	}
	if f.answer != nil {
		view.fill(f.answer)
	}
	return view
}

// fill sets the form's fields from an answer.
func (v *consentView) fill(given *answer) {
	v.Write, v.MustAsk, v.Open = given.write, given.mustAsk, true
	v.PostsPerDay, v.EndsAt = text.Cut(given.postsPerDay, 12), text.Cut(given.endsAt, 32)
}

// addExisting sets Existing if the person has already approved the client for the organization. It
// then also fills in a new form with the existing grant's values, because approving the form would
// replace the grant.
func (a *consents) addExisting(c *fiber.Ctx, view *consentView, p tenancy.Principal, f *consentForm) error {
	if a.deps.Grants == nil {
		return nil
	}
	list, err := a.deps.Grants.List(contextOf(c), p)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(g oidc.Grant) bool {
		return g.Org == p.Org && g.Client.ClientID == f.request.Client.ClientID
	})
	if i < 0 {
		return nil
	}
	view.Existing = true
	if f.answer != nil {
		return nil
	}
	zone, err := a.zoneOf(c, p)
	if err != nil {
		return err
	}
	f.answer = approved(list[i], zone)
	view.fill(f.answer)
	return nil
}

// approved returns the answer that would produce the given grant. If the client asks to write for
// the first time, the box is checked, as it is for a new client.
func approved(g oidc.Grant, zone *time.Location) *answer {
	l := g.Limits
	out := &answer{write: !g.WriteDeclined, mustAsk: l.MustAsk, channels: l.Channels, customers: l.Customers}
	if l.PostsPerDay > 0 {
		out.postsPerDay = strconv.Itoa(l.PostsPerDay)
	}
	if l.EndsAt != nil {
		out.endsAt = l.EndsAt.Add(-1).In(zone).Format(time.DateOnly) // access ends after the last day
	}
	return out
}

// addOrganizations adds the chosen organization's name. Unless a device requests access, it also
// adds links to the other organizations that the person can choose.
func (a *consents) addOrganizations(c *fiber.Ctx, view *consentView, p tenancy.Principal, f consentForm) error {
	all, err := a.deps.Organizations.Organizations(contextOf(c), p)
	if err != nil {
		return err
	}
	view.OrgID = p.Org.String()
	if f.organization != "" {
		view.OrgID = f.organization // the person may have left it
	}
	for _, o := range all {
		switch {
		case strings.EqualFold(o.ID.String(), view.OrgID):
			view.Organization = o.Name
		case o.SuspendedAt != nil || o.DeletedAt != nil || o.Disabled:
		case f.device == "":
			at := a.link(authorizePath, f.query.with(organizationParameter, o.ID.String()).without("prompt"))
			view.Others = append(view.Others, orgChoice{Name: o.Name, URL: at})
		}
	}
	return nil
}

// addChoices adds the single-use token, and the channels and customers that the person can choose.
func (a *consents) addChoices(c *fiber.Ctx, view *consentView, p tenancy.Principal, f consentForm) (err error) {
	view.Ticket, err = a.newTicket(p, f.request, f.device)
	if err != nil {
		return err
	}
	var chosen answer
	if f.answer != nil {
		chosen = *f.answer
	}
	customers, err := a.deps.Channels.Customers(contextOf(c), p)
	if err != nil {
		return err
	}
	for i, o := range customers {
		shown := choice{ID: o.ID.String(), Name: o.Name, Checked: slices.Contains(chosen.customers, o.ID.String())}
		if i < maxListed || shown.Checked {
			view.Customers = append(view.Customers, shown)
		}
	}
	view.Customers = withMissing(view.Customers, chosen.customers, "A group that no longer exists")
	channels, err := a.deps.Channels.List(contextOf(c), p, "")
	if err != nil {
		return err
	}
	view.TooMany = len(channels) > maxListed
	for _, o := range channels {
		id := o.ID.String()
		shown := choice{ID: id, Name: o.Name, Detail: o.Connector, Checked: slices.Contains(chosen.channels, id)}
		if !view.TooMany || shown.Checked {
			view.Channels = append(view.Channels, shown)
		}
	}
	view.Channels = withMissing(view.Channels, chosen.channels, "A channel that no longer exists")
	return nil
}

// withMissing adds the chosen ids that are missing from listed. Otherwise, the form could lose all
// of its ids, and a grant without ids has no limit.
func withMissing(listed []choice, chosen []string, name string) []choice {
	for _, id := range chosen {
		if !slices.ContainsFunc(listed, func(o choice) bool { return o.ID == id }) {
			listed = append(listed, choice{ID: id, Name: name, Checked: true})
		}
	}
	return listed
}

// askAgain shows the consent page again after an answer was rejected. The page keeps what the
// person entered.
func (a *consents) askAgain(c *fiber.Ctx, p tenancy.Principal, f consentForm, err error) error {
	if _, ok := asOAuth(err); ok { // such as a client that has been deleted
		return a.showRefusal(c, err)
	}
	status, message := page.Problem(c, err)
	f.errors = fieldErrors(err)
	f.problem = message
	if len(f.errors) > 0 {
		f.problem = "Please correct the limits below."
	}
	return a.showConsent(c, status, p, f)
}

// showUsed responds to a second answer from the same consent page.
func (a *consents) showUsed(c *fiber.Ctx, err error) error {
	status, _ := page.Problem(c, err)
	return a.send(c, a.messagePage, status, messageView{
		frame: frame{Title: "You have already answered"},
		Text:  "You have already answered this page. If the app is not connected, start again in the app.",
	})
}
