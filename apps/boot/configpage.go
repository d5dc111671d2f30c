package boot

import (
	"fmt"
	"io"
	"strings"

	"crier/platform/env"
)

type configCommand struct {
	Markdown bool `help:"Print the page docs/self-hosting/configuration.md."`
}

func (c configCommand) Run(t *terminal) error {
	if !c.Markdown {
		printVariables(t.out)
		return nil
	}
	_, err := io.WriteString(t.out, configPage())
	return err
}

// printVariables prints a line for each configuration variable.
func printVariables(out io.Writer) {
	for _, v := range env.Names(&Config{}) {
		note := v.Doc
		switch {
		case v.Required:
			note += " (required)"
		case v.Default != "":
			note += " (default " + v.Default + ")"
		}
		fmt.Fprintf(out, "  %-25s %s\n", v.Name, note)
	}
}

// section is a group of variables with a heading and an introduction in Markdown.
type section struct {
	title string
	intro string
	names []string
}

// sections groups the variables for the configuration page. Each variable is in exactly one
// section.
var sections = []section{
	{
		title: "Essentials", intro: "See [Install](install.md) and [Network](network.md).",
		names: []string{"DATABASE_URL", "ENCRYPTION_KEYS", "BASE_URL", "HOST", "PORT", "CRIER_HOME"},
	},
	{
		title: "Network", intro: "See [Network](network.md).",
		names: []string{
			"TRUSTED_PROXIES", "FRONTEND_URL", "MAIN_URL", "MAX_CONNECTIONS", "CLIENT_MAX_CONNECTIONS",
			"REQUEST_TIMEOUT", "UPLOAD_TIMEOUT", "UPLOAD_MIN_RATE", "BODY_LIMIT", "POST_BODY_LIMIT",
			"UPLOAD_BODY_LIMIT", "OUTBOUND_ALLOW", "MCP_ORIGINS", "MCP_KEY_IN_PATH",
		},
	},
	{
		title: "Organization limits", intro: "See [Limits and disk use](limits-and-disk.md) and [Plans](plans.md).",
		names: []string{
			"API_LIMIT", "APP_LIMIT", "ORG_MAX_CHANNELS", "ORG_MAX_WEBHOOKS", "ORG_MAX_STORAGE_BYTES", "PLANS_FILE",
		},
	},
	{
		title: "Database", intro: "See [Database](database.md).",
		names: []string{"DATABASE_MAX_CONNS", "DATABASE_DIRECT_URL", "POOLER", "ROLE_PREFIX"},
	},
	{
		title: "Files", intro: "See [Files](files.md).",
		names: []string{
			"FILES", "FILES_DIR", "MAX_IMAGE_BYTES", "MAX_VIDEO_BYTES", "S3_ENDPOINT", "S3_REGION", "S3_BUCKET",
			"S3_ACCESS_KEY", "S3_SECRET_KEY", "S3_PATH_STYLE",
		},
	},
	{
		title: "Accounts and email", intro: "See [Accounts](accounts.md).",
		names: []string{
			"REGISTRATION", "SMTP_URL", "MAIL_FROM", "DELETE_GRACE", "ORGANIZATIONS_PER_DAY",
			"ORGANIZATIONS_PER_PERSON", "DEFAULT_PLAN_ORGANIZATIONS", "ENTERPRISE_SECRET",
		},
	},
	{
		title: "Agents", intro: "Programs that people authorize through OAuth to act for them.",
		names: []string{"OAUTH_ACCESS_TTL"},
	},
	{
		title: "Sign-in providers", intro: "See [Accounts](accounts.md#sign-in-providers).",
		names: []string{
			"GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET", "GITHUB_URL", "GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET",
			"OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_NAME", "OIDC_TRUST_EMAIL", "MOBILE_APP_SCHEME",
		},
	},
	{
		title: "Platforms", intro: "See [Publishing](publishing.md#applications-at-platforms).",
		names: []string{"SANDBOX_URL", "SANDBOX_OAUTH_CLIENT_ID", "SANDBOX_OAUTH_CLIENT_SECRET", "PLATFORM_RATES"},
	},
	{
		title: "Publishing", intro: "See [Publishing](publishing.md).",
		names: []string{"MAX_IN_FLIGHT", "ORG_MAX_IN_FLIGHT", "RETRY_WINDOW", "MAX_LATENESS", "PAUSE_MAX_AGE"},
	},
	{
		title: "Several processes", intro: "See [Several processes](processes.md).",
		names: []string{
			"ROLES", "REDIS_URL", "CLUSTER_LISTEN", "CLUSTER_ADVERTISE", "CLUSTER_CERT", "CLUSTER_KEY", "CLUSTER_CA",
		},
	},
	{
		title: "Logs and monitoring", intro: "See [Several processes](processes.md#health-and-monitoring).",
		names: []string{"LOG_LEVEL", "LOG_FORMAT", "METRICS_LISTEN", "MONITOR_TOKEN"},
	},
	{
		title: "Retention", intro: "See [Limits and disk use](limits-and-disk.md#what-is-deleted).",
		names: []string{
			"IDEMPOTENCY_KEY_RETENTION", "EVENT_RETENTION", "DELETED_POST_RETENTION", "WEBHOOK_RETENTION",
			"ANALYTICS_RETENTION", "NOTIFICATION_RETENTION", "SESSION_RETENTION", "PRUNE_INTERVAL",
		},
	},
	{
		title: "Advanced",
		intro: "These settings control the timing of the scheduler and of shutdown. Their defaults are chosen to work " +
			"together, so change a setting only if you know what depends on it. " +
			"[Publishing](publishing.md#timing) explains the settings that affect what happens to posts.",
		names: []string{
			"PLATFORM_TIMEOUT", "SETTLE_DELAY", "RECONCILE_WINDOW", "PREPARE_TIMEOUT", "FOLLOWER_TIMEOUT",
			"CATCH_UP_INTERVAL", "LEASE_TTL", "HEARTBEAT_INTERVAL", "SWEEP_INTERVAL", "ACTOR_TIMEOUT", "DRAIN_DELAY",
			"DRAIN_TIMEOUT", "STOP_TIMEOUT",
		},
	},
}

const configHead = "# Configuration\n\n" +
	"<!-- Written by `go run ./apps/crier config --markdown`. Do not edit. -->\n\n" +
	"`crier serve` reads its configuration from environment variables. An empty value counts as unset. " +
	"`serve` needs `DATABASE_URL` and `ENCRYPTION_KEYS`. Everything else has a default or is optional.\n\n" +
	"Durations are written as `30s`, `5m` or `12h`, and sizes as numbers of bytes. " +
	"`serve` checks all settings before it starts, and reports each invalid setting with its allowed values. " +
	"`--env NAME=VALUE` sets a variable for a single run. `crier config` lists all variables in the terminal.\n"

// configPage returns the content of docs/self-hosting/configuration.md.
func configPage() string {
	variables := map[string]env.Var{}
	for _, v := range env.Names(&Config{}) {
		variables[v.Name] = v
	}
	var b strings.Builder
	b.WriteString(configHead)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| variable | default | meaning |\n|---|---|---|\n", s.title, s.intro)
		for _, name := range s.names {
			v, fallback := variables[name], ""
			switch {
			case v.Required:
				fallback = "required"
			case v.Default != "":
				fallback = "`" + v.Default + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, fallback, strings.ReplaceAll(v.Doc, "<", `\<`))
		}
	}
	return b.String()
}
