package access

import (
	"context"

	"crier/publishing"
	accessstore "crier/publishing/access/store"
	"crier/publishing/connector"
	"crier/tenancy"
)

// App returns the OAuth application to use for an organization's new channels. This is the
// organization's own application or, if it has none, the instance's application. App returns an
// error if the database fails or the application's secret cannot be decrypted.
func (k *Refresher) App(
	ctx context.Context, org tenancy.OrgID, family string,
) (connector.App, publishing.AppSource, error) {
	own, err := k.ownApp(ctx, org, family)
	if err != nil || own.ClientID != "" {
		return own, publishing.AppFromOrganization, err
	}
	if app := k.deps.Apps[family]; app.ClientID != "" {
		return app, publishing.AppFromInstance, nil
	}
	return connector.App{}, publishing.AppNone, nil
}

// AppWith returns the application with the given client id, which belongs to the organization or
// the instance. If there is no such application, AppWith returns the zero App. Call AppWith for
// existing channels, which keep using the application they were connected through.
func (k *Refresher) AppWith(ctx context.Context, org tenancy.OrgID, family, clientID string) (connector.App, error) {
	own, err := k.ownApp(ctx, org, family)
	if err != nil || own.ClientID == clientID {
		return own, err
	}
	if app := k.deps.Apps[family]; app.ClientID == clientID {
		return app, nil
	}
	return connector.App{}, nil
}

func (k *Refresher) ownApp(ctx context.Context, org tenancy.OrgID, family string) (connector.App, error) {
	stored, err := accessstore.PlatformApps(ctx, k.db, org, family)
	if err != nil || len(stored) == 0 {
		return connector.App{}, err
	}
	opened, err := k.deps.Keyring.Open(stored[0].Secret, org.String())
	return connector.App{ClientID: stored[0].ClientID, Secret: string(opened)}, err
}

// appOf returns the application that a channel was connected through. If the channel's platform
// uses a form instead of OAuth, appOf returns the zero App.
func (k *Refresher) appOf(ctx context.Context, c *Channel, clientID string) (connector.App, error) {
	a, ok := connector.AuthorizerOf(c.Connector)
	if !ok {
		return connector.App{}, nil
	}
	app, err := k.AppWith(ctx, c.Org, a.Family().ID, clientID)
	if err != nil {
		return app, transient("The channel's application could not be read.", err)
	}
	if app.ClientID == "" {
		return app, reauth("The application that this channel was connected with was removed or changed; " +
			"reconnect the channel.")
	}
	return app, nil
}
