package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"crier/apps/edge"
	"crier/apps/sim/sandbox"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/migrations"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/platform/telemetry"
)

const (
	exitOK     = 0
	exitFailed = 1
)

type commands struct {
	Env      []string        `short:"e" name:"env" placeholder:"NAME=VALUE" help:"Set a variable for this run."`
	Dev      devCommand      `cmd:"" help:"Run everything on this machine, with its own database and sandbox."`
	Serve    serveCommand    `cmd:"" help:"Run the service, configured by the environment."`
	Migrate  migrateCommand  `cmd:"" help:"Bring the database at DATABASE_URL up to date."`
	Sandbox  sandboxCommand  `cmd:"" help:"Run only the sandbox, a pretend platform."`
	Routes   routesCommand   `cmd:"" help:"List the method and path of each route that works."`
	Keygen   keygenCommand   `cmd:"" help:"Print a new key for ENCRYPTION_KEYS."`
	Openapi  openapiCommand  `cmd:"" help:"Print the OpenAPI document."`
	Config   configCommand   `cmd:"" help:"List the configuration variables."`
	Admin    adminCommand    `cmd:"" help:"Create accounts, reset passwords, suspend organizations."`
	Licenses licensesCommand `cmd:"" help:"Print the licenses of everything in this binary, if ops/release built it."`
}

// terminal holds the context, environment and streams of a command. kong passes it to the command's
// Run method.
type terminal struct {
	ctx      context.Context
	lookup   env.Lookup
	in       io.Reader
	out, err io.Writer
}

// Main runs the command in args and returns its exit code. The command runs until it is done or ctx
// ends. Main writes errors to errs.
func Main(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	var c commands
	parser, err := kong.New(&c, kong.Name("crier"),
		kong.Description("Publishes to social platforms: on time, in order, exactly once."),
		kong.Writers(out, errs), kong.UsageOnError(), kong.Exit(func(int) {}), kong.Help(help))
	if err != nil {
		fmt.Fprintln(errs, "crier:", err)
		return exitFailed
	}
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		_, _ = parser.Parse(args) // kong prints the help as it parses
		return exitOK
	}
	line, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintln(errs, "crier:", err)
		return exitFailed
	}
	over := map[string]string{}
	for _, pair := range c.Env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			fmt.Fprintf(errs, "crier: --env takes NAME=VALUE, not %q\n", pair)
			return exitFailed
		}
		over[name] = value
	}
	if err := line.Run(&terminal{ctx: ctx, lookup: env.With(env.OS(), over), in: in, out: out, err: errs}); err != nil {
		fmt.Fprintln(errs, "crier:", errorText(err))
		return exitFailed
	}
	return exitOK
}

// help prints kong's help and, for serve, the configuration variables.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	if ctx.Selected() == nil || ctx.Selected().Name != "serve" {
		return nil
	}
	fmt.Fprintln(ctx.Stdout, "\nConfiguration variables:")
	printVariables(ctx.Stdout)
	return nil
}

// errorText formats an error for the terminal. For a fault, it returns the message and, if there is
// one, the cause.
func errorText(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) || f.Message == "" {
		return err.Error()
	}
	if f.Err != nil {
		return f.Message + " (" + strings.ReplaceAll(f.Err.Error(), "\n", " ") + ")"
	}
	return f.Message
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// setGCPercent sets the GC percentage to 400 unless GOGC is set, because the live heap is small
// compared to the garbage that a burst of posts creates.
func setGCPercent(lookup env.Lookup) {
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(400)
	}
}

type serveCommand struct{}

func (serveCommand) Run(t *terminal) error {
	var cfg Config
	if err := env.Load(t.ctx, t.lookup, &cfg); err != nil {
		return fmt.Errorf("the configuration is incomplete:\n%w", err)
	}
	cfg.Version = version()
	format := cfg.Telemetry.LogFormat
	if format == "auto" {
		format = "json"
	}
	log, err := telemetry.NewLogger(t.err, format, cfg.Telemetry.LogLevel)
	if err != nil {
		return err
	}
	slog.SetDefault(log) // for libraries, such as those of the OAuth server
	cfg.warn(log)
	if !cfg.Mail.Enabled() {
		log.Warn("SMTP_URL is not set: accounts are active without confirmation, invitations are only links, " +
			"and a forgotten password needs `crier admin reset-password`.")
	}
	limit, err := descriptorLimit()
	if err != nil {
		return err
	}
	if err := checkDescriptors(limit); err != nil {
		return err
	}
	cfg.fitConnections(limit, log)
	setGCPercent(t.lookup)
	app := New(cfg, log)
	if err := app.Start(t.ctx); err != nil {
		return err
	}
	log.Info("crier is ready", "address", app.Addr(), "metrics", app.PrivateAddr(), "node", app.nodeName(),
		"version", app.cfg.Version)
	return errors.Join(app.Wait(t.ctx), app.Close())
}

type migrateCommand struct{}

func (migrateCommand) Run(t *terminal) error {
	var cfg pg.Config
	if err := env.Load(t.ctx, t.lookup, &cfg); err != nil {
		return err
	}
	log, err := telemetry.NewLogger(t.err, "auto", slog.LevelInfo)
	if err != nil {
		return err
	}
	schema := migrations.Config{URL: cfg.Direct(), RolePrefix: cfg.RolePrefix}
	if err := migrations.Migrate(t.ctx, schema, log); err != nil {
		return err
	}
	fmt.Fprintln(t.out, "The database is up to date.")
	return nil
}

type sandboxCommand struct {
	Address string `default:"127.0.0.1:4009" help:"Address to listen on; loopback only."`
}

func (c sandboxCommand) Run(t *terminal) error {
	var cfg struct {
		Home string `env:"CRIER_HOME, default=.crier"`
	}
	if err := env.Load(t.ctx, t.lookup, &cfg); err != nil {
		return err
	}
	log, err := telemetry.NewLogger(t.err, "auto", slog.LevelInfo)
	if err != nil {
		return err
	}
	platform, err := sandbox.Open(filepath.Join(cfg.Home, "sandbox"), sandbox.Options{Log: log})
	if err != nil {
		return err
	}
	ln, err := sandbox.Listen(t.ctx, c.Address)
	if err != nil {
		return errors.Join(err, platform.Close())
	}
	fmt.Fprintf(t.out, "The sandbox is at http://%s\n", ln.Addr())
	return platform.Serve(t.ctx, ln)
}

type routesCommand struct {
	Missing bool `help:"Instead, list the routes of the interface that do not work yet."`
}

func (c routesCommand) Run(t *terminal) error {
	routes := edge.Routes()
	if !c.Missing {
		t.printRoutes(routes, edge.Built)
		return nil
	}
	t.printRoutes(routes, edge.Missing)
	fmt.Fprintln(t.out, "\nBeyond the interface:")
	t.printRoutes(routes, edge.Planned)
	return nil
}

func (t *terminal) printRoutes(routes []edge.Route, state edge.State) {
	for _, r := range routes {
		if r.State == state {
			fmt.Fprintln(t.out, r)
		}
	}
}

type keygenCommand struct{}

func (keygenCommand) Run(t *terminal) error {
	key, err := secret.GenerateKey()
	if err != nil {
		return err
	}
	fmt.Fprintln(t.out, key)
	return nil
}

type openapiCommand struct{}

func (openapiCommand) Run(t *terminal) error {
	doc, err := edge.OpenAPI()
	if err != nil {
		return err
	}
	_, err = t.out.Write(doc)
	return err
}
