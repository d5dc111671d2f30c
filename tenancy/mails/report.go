package mails

import (
	"cmp"
	"fmt"
	"slices"

	"crier/platform/mail"
	"crier/platform/text"
	"crier/tenancy"
)

const (
	// maxReason is the maximum length, in characters, of a reason or note in a message.
	maxReason = 300
	// maxWords is the maximum length, in characters, of a quotation from a post.
	maxWords = 80
)

// someChannel replaces an empty channel name.
const someChannel = "a channel"

// Report returns a message that tells a member about a channel incident, the posts published on a
// day, or an approval.
func (i Instance) Report(to, organization string, r tenancy.Report) mail.Message {
	var c content
	switch org := quoted(organization, someOrganization); r.Kind {
	case tenancy.ReportPublished:
		c = published(org, r)
	case tenancy.ReportApproval:
		c = i.approval(org, r)
	default:
		c = i.incident(org, r)
	}
	c.To = to
	c.Buttons = []button{{Label: "Open " + i.Name, URL: i.URL}}
	return i.message(c)
}

// Reports returns a message that tells a member about several incidents and approvals. more is the
// number of further reports that are not in list. If there is only one report in total, Reports
// returns the same message as Report.
func (i Instance) Reports(to, organization string, list []tenancy.Report, more int) mail.Message {
	if len(list) == 1 && more == 0 {
		return i.Report(to, organization, list[0])
	}
	isApproval := func(r tenancy.Report) bool { return r.Kind == tenancy.ReportApproval }
	noun, reason := "problem", "problems"
	if slices.ContainsFunc(list, isApproval) {
		noun, reason = "notification", "problems and approvals"
	}
	title := fmt.Sprintf("%s in %s", text.Count(len(list)+more, noun), quoted(organization, someOrganization))
	c := content{
		To: to, Subject: title, Paragraphs: []string{title + ":"},
		Notes:   []string{fmt.Sprintf("For the full, up-to-date list, see the notifications in %s.", i.Name)},
		Buttons: []button{{Label: "Open " + i.Name, URL: i.URL}},
		Reason: "You are receiving this message because you are a member of this organization and receive emails " +
			"about " + reason + ".",
	}
	for _, r := range list {
		c.Paragraphs = append(c.Paragraphs, i.line(r))
	}
	if more > 0 {
		c.Paragraphs = append(c.Paragraphs, fmt.Sprintf("And %d more.", more))
	}
	return i.message(c)
}

// line returns up to three sentences about a report, including its reason and its first post.
func (i Instance) line(r tenancy.Report) string {
	what := r.What(channelName(r.Channel, r.Platform)) + "."
	if reason := text.Shorten(unlink(clean(r.Reason)), maxReason); reason != "" {
		what += " " + reasonOf(r) + reason
	}
	if post := i.firstPost(r); post != "" {
		what += " " + post
	}
	return what
}

// reasonOf returns the label to put in front of a report's reason.
func reasonOf(r tenancy.Report) string {
	if r.Kind == tenancy.ReportApproval && !r.Void {
		return "Note: "
	}
	return "Reason: "
}

// firstPost returns a sentence that identifies a report's first post, or "" if the report has none.
// The sentence quotes the post and gives its date, because people do not recognize a post by its
// id.
func (i Instance) firstPost(r tenancy.Report) string {
	which := "The first post"
	if r.Kind == tenancy.ReportApproval {
		which = "The post"
	}
	words := excerpt(r.Words, maxWords)
	switch {
	case r.Post == "":
		return ""
	case r.PostAt.IsZero():
		return which + " was deleted."
	case words == "":
		return fmt.Sprintf("%s has no text and is dated %s.", which, i.at(r.PostAt))
	}
	return fmt.Sprintf("%s is %s, dated %s.", which, words, i.at(r.PostAt))
}

// approval returns the content of a message about an approval request or the response to it.
func (i Instance) approval(org string, r tenancy.Report) content {
	on := channelName(r.Channel, r.Platform)
	c := content{
		Subject: r.What(on), Paragraphs: []string{fmt.Sprintf("%[2]s: %[1]s.", r.What(on), org)},
		Reason: "You are receiving this message because you are a member of this organization and receive emails " +
			"about approvals.",
	}
	if note := text.Shorten(unlink(clean(r.Reason)), maxReason); note != "" {
		c.Paragraphs = append(c.Paragraphs, reasonOf(r)+note)
	}
	if post := i.firstPost(r); post != "" {
		c.Paragraphs = append(c.Paragraphs, post)
	}
	if r.Approved == nil {
		c.Notes = []string{"Any member except the requester can approve or reject the post."}
	}
	return c
}

// incident returns the content of a message about an incident.
func (i Instance) incident(org string, r tenancy.Report) content {
	on := channelName(r.Channel, r.Platform)
	n := text.Count(r.Posts, "post")
	c := content{Subject: r.What(on)}
	switch {
	case r.Kind == tenancy.ReportReconnect && r.OnlyPosts:
		c.Paragraphs = []string{fmt.Sprintf(
			"%[1]s from %[3]s could not be published on %[2]s, because the channel needs to be "+
				"reconnected.", n, on, org)}
		c.Notes = []string{"Reconnect the channel to publish its waiting posts."}
	case r.Kind == tenancy.ReportReconnect:
		c.Paragraphs = []string{fmt.Sprintf("The channel %s in %s needs to be reconnected. Until then, nothing will "+
			"be published to it.", on, org)}
		if r.Posts > 0 {
			c.Paragraphs = append(c.Paragraphs, fmt.Sprintf("So far, %s could not be published.", n))
		}
		c.Notes = []string{"Reconnect the channel to publish its waiting posts."}
	case r.Kind == tenancy.ReportMissed:
		c.Paragraphs = []string{fmt.Sprintf(
			"%[1]s from %[3]s could not be published on %[2]s in time and will not be published later.", n, on, org)}
		c.Notes = []string{"Schedule the posts again if you still want to publish them."}
	case r.Kind == tenancy.ReportUnknown:
		c.Paragraphs = []string{fmt.Sprintf(
			"%[1]s from %[3]s may or may not have been published on %[2]s, because the platform did not "+
				"respond.", n, on, org)}
		c.Notes = []string{"Please check the platform before you publish the posts again."}
	default:
		c.Paragraphs = []string{fmt.Sprintf("%[1]s from %[3]s could not be published on %[2]s.", n, on, org)}
		c.Notes = []string{"Fix the problem, then schedule the posts again."}
	}
	if reason := text.Shorten(unlink(clean(r.Reason)), maxReason); reason != "" {
		c.Paragraphs = append(c.Paragraphs, reasonOf(r)+reason)
	}
	if post := i.firstPost(r); post != "" {
		c.Paragraphs = append(c.Paragraphs, post)
	}
	began := fmt.Sprintf("The problem started on %s.", i.at(r.Since))
	if r.Again {
		began = fmt.Sprintf("The problem first occurred on %s, was resolved, and has now recurred.", i.at(r.Since))
	}
	c.Paragraphs = append(c.Paragraphs, fmt.Sprintf(
		"%s You will not receive another email about this problem while it continues. The notifications in %s show "+
			"the current number of affected posts.", began, i.Name))
	c.Reason = "You are receiving this message because you are a member of this organization and receive emails " +
		"about problems."
	return c
}

// published returns the content of a message about the posts published on a day.
func published(org string, r tenancy.Report) content {
	c := content{
		Subject: fmt.Sprintf("%s published for %s", text.Count(r.Posts, "post"), org),
		Paragraphs: []string{fmt.Sprintf("On %[1]s, %[3]s published %[2]s.",
			r.Since.UTC().Format("2 January 2006"), text.Count(r.Posts, "post"), org)},
		Reason: "You are receiving this message because you are a member of this organization and receive emails " +
			"about published posts.",
	}
	for _, ch := range r.Channels {
		c.Paragraphs = append(c.Paragraphs, fmt.Sprintf("%s: %d", channelName(ch.Name, ch.Platform), ch.Posts))
	}
	if r.More > 0 {
		c.Paragraphs = append(c.Paragraphs, fmt.Sprintf("And on %s.", text.Count(r.More, "more channel")))
	}
	return c
}

// channelName returns a channel's name followed by its platform.
func channelName(channel, platform string) string {
	return fmt.Sprintf("%s (%s)", quoted(channel, someChannel), cmp.Or(name(platform, ""), "a platform"))
}
