package boot

import (
	"context"
	"time"

	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/jobs"
	"crier/platform/secret"
	"crier/publishing/access"
	"crier/publishing/connector"
)

// Apps holds the applications that this instance has registered with platforms, one per
// connector.Family. Their environment variables are named <FAMILY>_CLIENT_ID and
// <FAMILY>_CLIENT_SECRET, where <FAMILY> is the family's identifier. An organization can use its
// own application instead.
type Apps struct {
	SandboxOAuth PlatformApp `env:", prefix=SANDBOX_OAUTH_"`
}

// PlatformApp holds one application's credentials. If both fields are empty, the application is not
// configured.
type PlatformApp struct {
	ID     string      `env:"CLIENT_ID" doc:"Client id of this instance's application at the platform."`
	Secret secret.Text `env:"CLIENT_SECRET" doc:"Client secret of this instance's application at the platform."`
}

// named returns the applications by family, including those that are not configured.
func (a Apps) named() map[string]PlatformApp {
	return map[string]PlatformApp{"sandbox-oauth": a.SandboxOAuth}
}

// prefixes maps each family to its environment variable prefix. Example: SANDBOX_OAUTH_
var prefixes = map[string]string{"sandbox-oauth": "SANDBOX_OAUTH_"}

// Validate returns a joined error with an env.Fault for each application that has only one of its
// two variables set.
func (a Apps) Validate() error {
	var faults env.Faults
	for family, app := range a.named() {
		if app.ID != "" && app.Secret.Reveal() == "" {
			faults.Add(prefixes[family]+"CLIENT_SECRET", "is required with "+prefixes[family]+"CLIENT_ID")
		}
		if app.ID == "" && app.Secret.Reveal() != "" {
			faults.Add(prefixes[family]+"CLIENT_ID", "is required with "+prefixes[family]+"CLIENT_SECRET")
		}
	}
	return faults.Err()
}

func (a Apps) byFamily() map[string]connector.App {
	out := map[string]connector.App{}
	for family, app := range a.named() {
		if app.ID != "" {
			out[family] = connector.App{ClientID: app.ID, Secret: app.Secret.Reveal()}
		}
	}
	return out
}

func (a *App) openAccess(context.Context) error {
	a.access = access.New(access.Deps{
		DB: a.publishingDB(), Keyring: a.keyring, Connectors: a.connectors, HTTP: httpAdapter{Client: a.http},
		Clock: clock.System{},
		Log:   a.log, Apps: a.cfg.Apps.byFamily(), Timeout: a.cfg.Sender.PlatformTimeout,
	})
	return nil
}

// refreshInterval is how often the service looks for channel access that is about to expire.
const refreshInterval = time.Minute

// refreshJob returns the job that refreshes channel access before it expires.
func (a background) refreshJob() jobs.Job {
	return jobs.Job{Name: "refresh-access", Every: refreshInterval, Timeout: jobTimeout, Alone: true,
		Run: func(ctx context.Context) error {
			_, err := a.access.Sweep(ctx)
			return err
		},
	}
}

// checkFamilies returns an error if a connector's family has no environment variables in Apps.
func (a *App) checkFamilies() error {
	for _, c := range a.connectors.All() {
		authorizer, ok := connector.AuthorizerOf(c)
		if !ok {
			continue
		}
		if _, known := a.cfg.Apps.named()[authorizer.Family().ID]; !known {
			return fault.New(fault.Internal, "boot.checkFamilies",
				"The applications of "+authorizer.Family().ID+" have no variables; see boot.Apps.")
		}
	}
	return nil
}
