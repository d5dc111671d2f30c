package connector

// Planned is a platform that this version does not offer yet.
type Planned struct {
	// ID is the identifier that the connector will have.
	ID   string
	Name string
}

// PlannedPlatforms returns the planned platforms, most wanted first.
func PlannedPlatforms() []Planned {
	return []Planned{
		{ID: "mastodon", Name: "Mastodon"}, {ID: "telegram", Name: "Telegram"}, {ID: "discord", Name: "Discord"},
		{ID: "slack", Name: "Slack"}, {ID: "wordpress", Name: "WordPress"}, {ID: "x", Name: "X"},
		{ID: "linkedin", Name: "LinkedIn"}, {ID: "linkedin-page", Name: "LinkedIn Page"},
		{ID: "facebook", Name: "Facebook Page"}, {ID: "instagram", Name: "Instagram (Facebook Business)"},
		{ID: "instagram-standalone", Name: "Instagram (Standalone)"}, {ID: "threads", Name: "Threads"},
		{ID: "tiktok", Name: "TikTok"}, {ID: "youtube", Name: "YouTube"}, {ID: "pinterest", Name: "Pinterest"},
		{ID: "gmb", Name: "Google Business Profile"}, {ID: "reddit", Name: "Reddit"}, {ID: "devto", Name: "Dev.to"},
		{ID: "lemmy", Name: "Lemmy"}, {ID: "listmonk", Name: "ListMonk"}, {ID: "hashnode", Name: "Hashnode"},
		{ID: "tumblr", Name: "Tumblr"}, {ID: "wrapcast", Name: "Farcaster"},
	}
}
