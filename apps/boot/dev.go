package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"crier/apps/sim/sandbox"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/mail"
	"crier/platform/migrations"
	"crier/platform/secret"
	"crier/platform/telemetry"
	"crier/publishing"
	"crier/publishing/channel"
	"crier/tenancy"
	"crier/tenancy/registration"
)

type devCommand struct{}

// demo holds the URLs, ids and credentials that `dev` created for its user. It is stored in
// dev.json.
type demo struct {
	BaseURL        string            `json:"baseUrl"`
	APIKey         string            `json:"apiKey"`
	Email          string            `json:"email"`
	Password       string            `json:"password"`
	OrganizationID string            `json:"organizationId"`
	ChannelID      string            `json:"channelId"`
	Channels       map[string]string `json:"channels"` // channel ids by sandbox grade
	SandboxURL     string            `json:"sandboxUrl"`
}

// These are the credentials of the application that `dev` registers with its sandbox. They need not
// be secret, because the sandbox listens only on loopback.
const (
	devAppID     = "crier-dev"
	devAppSecret = "crier-dev-sandbox"
)

const demoEmail = "demo@crier.test"

// Run runs a database, a simulated platform and the service until the context ends. It stops the
// service first, because posts that are being sent still need the database and the platform.
func (devCommand) Run(t *terminal) (err error) {
	lookup := env.Defaults(t.lookup, map[string]string{
		"DRAIN_DELAY": "0s", "DRAIN_TIMEOUT": "5s", "STOP_TIMEOUT": "9s", "MAX_CONNECTIONS": "1024",
		"REGISTRATION": string(registration.RegisterOpen),
	})
	home, err := devHome(lookup)
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(t.err, "text", devLogLevel(lookup))
	if err != nil {
		return err
	}
	slog.SetDefault(log) // for libraries, such as those of the OAuth server
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	database, err := devDatabase(ctx, lookup, home, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.stop()) }()
	key, err := loadOrCreateKey(filepath.Join(home, "encryption.key"))
	if err != nil {
		return err
	}
	platform, err := devSandbox(ctx, home, devAddress(lookup), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, platform.close()) }()
	cfg, err := devConfig(ctx, lookup, home, map[string]string{
		"DATABASE_URL": database.url, "ENCRYPTION_KEYS": key, "SANDBOX_URL": platform.url,
		"SANDBOX_OAUTH_CLIENT_ID": devAppID, "SANDBOX_OAUTH_CLIENT_SECRET": devAppSecret,
	})
	if err != nil {
		return err
	}
	cfg.warn(log)
	limit, err := descriptorLimit()
	if err != nil {
		return err
	}
	if few := checkDescriptors(limit); few != nil {
		log.Warn(errorText(few))
	}
	cfg.fitConnections(limit, log)
	app := New(cfg, log)
	if !cfg.Mail.Enabled() {
		app.box = mail.NewBox(clock.System{})
	}
	if err := migrations.Migrate(ctx, (storage{app}).schema(), log); err != nil {
		return err
	}
	go database.watch(app.group.Fail)
	if err := app.Start(ctx); err != nil {
		return err
	}
	if err := (showcase{app}).showDemo(ctx, t, home, platform.url); err != nil {
		return errors.Join(err, app.Close())
	}
	return errors.Join(app.Wait(ctx), app.Close())
}

// showcase creates and prints the `crier dev` demo.
type showcase struct{ *App }

func (a showcase) showDemo(ctx context.Context, t *terminal, home, sandboxURL string) error {
	d, err := a.demo(ctx, home, sandboxURL)
	if err != nil {
		return err
	}
	return d.print(t, home)
}

// devHome reads CRIER_HOME before the other variables, because their defaults depend on the
// folder's content.
func devHome(lookup env.Lookup) (string, error) {
	var cfg struct {
		Home string `env:"CRIER_HOME, default=.crier"`
	}
	if err := env.Load(context.Background(), lookup, &cfg); err != nil {
		return "", err
	}
	home, err := filepath.Abs(cfg.Home)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", fault.Wrap(fault.Invalid, "boot.dev",
			"The data folder "+home+" cannot be created; set CRIER_HOME.", err)
	}
	return home, nil
}

// devLogLevel returns LOG_LEVEL. The default is Warn, so that the URLs and credentials printed to
// the terminal stay visible.
func devLogLevel(lookup env.Lookup) slog.Level {
	l := slog.LevelWarn
	if v, ok := lookup("LOG_LEVEL"); ok && v != "" {
		_ = l.UnmarshalText([]byte(v)) // the configuration reports a wrong level
	}
	return l
}

// loadOrCreateKey returns the encryption key stored in the file at path. If the file is missing or
// empty, loadOrCreateKey writes a new random key to it.
func loadOrCreateKey(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fault.Wrap(fault.Invalid, "boot.dev", "The file "+path+" cannot be read.", err)
	}
	if len(raw) == 0 {
		key, err := secret.GenerateKey()
		if err != nil {
			return "", err
		}
		return key, os.WriteFile(path, []byte(key+"\n"), 0o600)
	}
	kept := strings.TrimSpace(string(raw))
	if _, err := (secret.Config{Keys: secret.Text(kept)}).Keyring(); err != nil {
		return "", fault.Wrap(fault.Invalid, "boot.dev",
			"The file "+path+" is invalid: it must contain the key that this data folder was created with.", err)
	}
	return kept, nil
}

type runningSandbox struct {
	url   string
	close func() error // stops the sandbox and waits for it to end
}

// devSandbox starts the simulated platform. It uses the port from earlier runs, because stored
// channels contain the platform's address.
func devSandbox(ctx context.Context, home, address string, log *slog.Logger) (runningSandbox, error) {
	portFile := filepath.Join(home, "sandbox.port")
	port := "0"
	if raw, err := os.ReadFile(portFile); err == nil {
		port = strings.TrimSpace(string(raw))
	}
	ln, err := sandbox.Listen(ctx, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return runningSandbox{}, fault.Wrap(fault.Unavailable, "boot.dev", "The sandbox cannot listen on port "+port+
			", which it used before: is something else using it? "+
			"Remove the data folder with "+portFile+" to start over.", err)
	}
	port = strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(portFile, []byte(port+"\n"), 0o644); err != nil {
		return runningSandbox{}, errors.Join(err, ln.Close())
	}
	options := sandbox.Options{Log: log, PublicURL: address + "/sandbox/"}
	platform, err := sandbox.Open(filepath.Join(home, "sandbox"), options)
	if err != nil {
		return runningSandbox{}, errors.Join(err, ln.Close())
	}
	err = platform.AddApp(sandbox.App{
		ClientID: devAppID, Secret: devAppSecret, Name: "Crier",
		Redirects: []string{address + channel.CallbackPath + "sandbox-oauth"},
	})
	if err != nil {
		return runningSandbox{}, errors.Join(err, platform.Close(), ln.Close())
	}
	// The platform must run until the service has stopped, so that the service can finish sending
	// posts.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- platform.Serve(serving, ln) }()
	stopAndWait := func() error {
		stop()
		return <-ended
	}
	return runningSandbox{url: "http://" + ln.Addr().String(), close: stopAndWait}, nil
}

// devAddress returns the service's public URL before the configuration is loaded. The sandbox needs
// the URL for its links, and the configuration needs the sandbox's address.
func devAddress(lookup env.Lookup) string {
	if v, ok := lookup("BASE_URL"); ok && v != "" {
		return strings.TrimRight(v, "/")
	}
	if v, ok := lookup("PORT"); ok {
		if port, err := strconv.ParseUint(v, 10, 16); err == nil { // the configuration reports a wrong port
			return "http://localhost:" + strconv.FormatUint(port, 10)
		}
	}
	return "http://localhost:4000"
}

func devConfig(ctx context.Context, lookup env.Lookup, home string, ours map[string]string) (Config, error) {
	var cfg Config
	defaults := map[string]string{"CRIER_HOME": home, "BASE_URL": devAddress(lookup), "LOG_FORMAT": "text"}
	maps.Copy(defaults, ours)
	lookup = env.With(env.Defaults(lookup, defaults), map[string]string{"CRIER_HOME": home})
	if err := env.Load(ctx, lookup, &cfg); err != nil {
		return cfg, fmt.Errorf("the configuration is invalid:\n%w", err)
	}
	cfg.Version = version()
	return cfg, nil
}

// demo returns the content of dev.json. If an earlier run left no usable dev.json, demo creates an
// organization with its owner, an API key and sandbox channels of three grades. It then saves them
// in dev.json.
func (a showcase) demo(ctx context.Context, home, sandboxURL string) (demo, error) {
	path := filepath.Join(home, "dev.json")
	if d, ok := a.loadDemo(ctx, path); ok {
		d.BaseURL = a.cfg.Edge.Base()
		return d, d.save(path)
	}
	password, err := secret.Token("", 16)
	if err != nil {
		return demo{}, err
	}
	email := demoEmail
	newOwner := registration.NewOwner{Email: email, Name: "Demo", Password: password, Organization: "Demo"}
	owner, err := a.Accounts.CreateOwner(ctx, newOwner)
	if fault.Is(err, fault.Conflict) { // an earlier run created the person, but dev.json was lost
		suffix, tokenErr := secret.Token("", 6)
		if tokenErr != nil {
			return demo{}, tokenErr
		}
		email = strings.ToLower("demo-" + suffix + "@crier.test")
		newOwner.Email = email
		owner, err = a.Accounts.CreateOwner(ctx, newOwner)
	}
	if err != nil {
		return demo{}, err
	}
	key, _, err := a.Accounts.CreateKey(ctx, owner, tenancy.NewKey{Name: "demo"})
	if err != nil {
		return demo{}, err
	}
	d := demo{
		BaseURL: a.cfg.Edge.Base(), APIKey: key, Email: email, Password: password,
		OrganizationID: owner.Org.String(), SandboxURL: sandboxURL, Channels: map[string]string{},
	}
	for _, grade := range []string{"A", "C", "E"} {
		d.Channels[grade], err = a.demoChannel(ctx, owner, sandboxURL, grade)
		if err != nil {
			return demo{}, err
		}
	}
	d.ChannelID = d.Channels["A"]
	return d, d.save(path)
}

// loadDemo reads the dev.json from an earlier run. ok is false if the file cannot be read or
// contains no channel, or if its API key does not belong to the organization in the file.
func (a showcase) loadDemo(ctx context.Context, path string) (d demo, ok bool) {
	raw, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(raw, &d) != nil {
		return d, false
	}
	p, err := a.Accounts.Authenticate(ctx, d.APIKey)
	if err != nil {
		return d, false
	}
	return d, p.Org.String() == d.OrganizationID && d.ChannelID != ""
}

// demoChannel connects a sandbox channel and returns its id. The sandbox keeps accounts between
// runs, and rejects the name of an existing account if the password differs. Therefore, the new
// account's name ends with part of the organization's id.
func (a showcase) demoChannel(ctx context.Context, owner tenancy.Principal, service, grade string) (string, error) {
	state, err := a.Channels.Begin(ctx, owner, publishing.BeginConnect{Connector: "sandbox"})
	if err != nil {
		return "", err
	}
	password, err := secret.Token("", 16)
	if err != nil {
		return "", err
	}
	name := "demo-" + strings.ToLower(grade) + "-" + owner.Org.String()[28:]
	connected, err := a.Channels.Finish(ctx, publishing.FinishConnect{
		Connector: "sandbox", State: state,
		Fields: map[string]string{"service": service, "name": name, "password": password, "grade": grade},
	})
	return connected.Channel.ID.String(), err
}

func (d demo) save(path string) error {
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o600)
}

// demoText is a format string. Its arguments are the base URL, email address, password, API key,
// channel, dev.json, header and picture. Each command is a single line so that it can be pasted.
const demoText = `
Crier runs at %[1]s

  API documentation  %[1]s/docs
  Sandbox            %[1]s/sandbox/   (what the pretend platform has published)
  Log-in             %[2]s / %[3]s
  Mails              %[1]s/dev/mail   (what the service would send)
  API key            %[4]s
  Channel            %[5]s
  The same for scripts: %[6]s

To schedule a post with an image five seconds ahead, paste these lines into a shell.

M=$(curl -s %[7]s -F 'file=@%[8]s' %[1]s/public/v1/upload); echo "$M"
T=$(($(date +%%s)+5)); ` +
	`D=$(date -u -r $T +%%Y-%%m-%%dT%%H:%%M:%%SZ 2>/dev/null || date -u -d @$T +%%Y-%%m-%%dT%%H:%%M:%%SZ); ` +
	`curl -s %[7]s -H 'Content-Type: application/json' -d '{"type":"schedule","date":"'$D'",` +
	`"posts":[{"integration":{"id":"%[5]s"},"value":[{"content":"Hello from Crier, due at '$D'","image":['"$M"']}]}]}' ` +
	`%[1]s/public/v1/posts; echo
curl -s %[7]s '%[1]s/public/v1/posts?page=0'; echo

Ctrl-C stops everything.
`

// print prints demoText and creates the picture that the printed commands upload.
func (d demo) print(t *terminal, home string) error {
	picture := filepath.Join(home, "hello.png")
	if err := drawHello(picture); err != nil {
		return err
	}
	auth := "-H 'Authorization: " + d.APIKey + "'"
	fmt.Fprintf(t.out, demoText,
		d.BaseURL, d.Email, d.Password, d.APIKey, d.ChannelID, filepath.Join(home, "dev.json"), auth, picture)
	return nil
}

func drawHello(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	const w, h = 640, 360
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, color.NRGBA{uint8(40 + 180*x/w), uint8(90 + 100*y/h), uint8(220 - 120*x/w), 255})
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, img), f.Close())
}
