package github

import (
	"slices"
	"strings"
)

// scopes maps each scope in "Scopes for OAuth apps", section "Available scopes", to the scope that
// includes it, or to "".
var scopes = map[string]string{
	"site_admin": "", "repo": "", "repo:status": "repo", "repo_deployment": "repo", "public_repo": "repo",
	"repo:invite": "repo", "security_events": "repo",
	"admin:repo_hook": "", "write:repo_hook": "admin:repo_hook", "read:repo_hook": "write:repo_hook",
	"admin:org": "", "write:org": "admin:org", "read:org": "write:org",
	"admin:public_key": "", "write:public_key": "admin:public_key", "read:public_key": "write:public_key",
	"admin:org_hook": "", "gist": "", "notifications": "",
	"user": "", "read:user": "user", "user:email": "user", "user:follow": "user",
	"project": "", "read:project": "project", "delete_repo": "",
	"write:packages": "", "read:packages": "", "delete:packages": "",
	"admin:gpg_key": "", "write:gpg_key": "admin:gpg_key", "read:gpg_key": "write:gpg_key",
	"codespace": "", "workflow": "", "admin:enterprise": "", "manage_runners:enterprise": "admin:enterprise",
	"manage_billing:enterprise": "admin:enterprise", "read:enterprise": "admin:enterprise", "read:audit_log": "",
}

// offlineAccess is the scope that asks for an expiring token. "Authorizing OAuth apps": it is not
// tracked as a scope, and a server without expiring tokens ignores it.
const offlineAccess = "offline_access"

// parseScopes splits a scope parameter at spaces, and at commas as in an example in "Normalized
// scopes". ok is false for an unknown scope. It is an assumption that GitHub refuses one.
func parseScopes(text string) (list []string, ok bool) {
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		if s == offlineAccess {
			continue
		}
		if _, known := scopes[s]; !known {
			return nil, false
		}
		list = append(list, s)
	}
	return normalizeScopes(list), true
}

// normalizeScopes drops repeated scopes and scopes that another one includes: "Scopes for OAuth
// apps", section "Normalized scopes".
func normalizeScopes(list []string) []string {
	out := []string{}
	for i, s := range list {
		if !slices.Contains(list[:i], s) && (scopes[s] == "" || !hasScope(list, scopes[s])) {
			out = append(out, s)
		}
	}
	return out
}

// hasScope reports whether the granted scopes contain the scope or one that includes it.
func hasScope(granted []string, scope string) bool {
	for ; scope != ""; scope = scopes[scope] {
		if slices.Contains(granted, scope) {
			return true
		}
	}
	return false
}
