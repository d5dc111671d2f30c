package arch

// layer lists what the packages of a folder may import. The first entry that matches a package
// applies.
type layer struct {
	from string
	// self restricts the entry to the folder itself, without its sub-folders.
	self bool
	// to lists folders, with their sub-folders.
	to []string
	// root lists folders, without their sub-folders.
	root []string
	// pure excludes the packages in impure.
	pure bool
}

var leaves = []string{"platform/fault", "platform/clock", "platform/id", "platform/paste", "platform/text"}

// tenancyLeaves are the packages that the nouns of tenancy share. They import no noun.
var tenancyLeaves = []string{
	// Ordered as layers, the lowest first.
	"tenancy/db", "tenancy/credential", "tenancy/notice", "tenancy/proof", "tenancy/entry",
	"tenancy/mails", "tenancy/passwords", "tenancy/signin",
}

// publishingLeaves are the packages that the nouns of publishing share.
var publishingLeaves = []string{
	"publishing/access", "publishing/connector", "publishing/db", "publishing/file", "publishing/pictures",
	"publishing/recurrence", "publishing/richtext", "publishing/scheduler/dispatch",
}

// nounUsers lists, for each noun, the packages that import it besides apps/boot and tests.
var nounUsers = map[string][]string{
	"publishing/scheduler": {"apps/worker"},
	"publishing/webhook":   {"apps/edge/docs"},
}

var layers = []layer{
	{from: "apps/crier", to: []string{"apps/boot"}},
	{from: "apps/boot", to: []string{"apps", "actors", "publishing", "tenancy", "billing", "oidc", "platform"}},
	{from: "apps/edge", to: []string{"apps/edge", "publishing", "tenancy", "actors/org", "platform"}, root: []string{"billing", "docs", "oidc"}},
	{from: "apps/worker", to: []string{"apps/worker", "actors", "publishing", "tenancy", "platform"}},
	{from: "apps/sim", to: []string{"apps/sim", "platform"}},

	{from: "actors/fairqueue", root: []string{"tenancy", "publishing", "publishing/scheduler/dispatch", "platform/clock", "platform/id"}, pure: true},
	{from: "actors", to: []string{"actors", "publishing", "tenancy", "platform"}},

	{from: "publishing/connector/all", to: []string{"publishing/connector"}},
	{
		from: "publishing/connector",
		to:   []string{"publishing/connector", "publishing/file/picture", "platform/fault", "platform/clock", "platform/outbound", "platform/paste", "platform/text"},
		root: []string{"publishing"},
	},
	{from: "publishing", self: true, to: leaves, root: []string{"tenancy", "publishing/recurrence", "publishing/richtext"}, pure: true},
	{from: "publishing/scheduler/dispatch", to: leaves, root: []string{"publishing", "tenancy"}, pure: true},
	{from: "publishing/recurrence", pure: true},
	{from: "publishing/richtext", pure: true},
	{from: "publishing", to: []string{"publishing", "tenancy", "platform"}},
	{from: "tenancy", self: true, to: leaves, pure: true},
	{from: "tenancy", to: append([]string{"platform", "tenancy/*/store"}, tenancyLeaves...), root: []string{"tenancy"}},
	{from: "docs"},
	{from: "billing", self: true, to: leaves, root: []string{"tenancy"}, pure: true},
	{from: "billing", to: []string{"billing", "tenancy", "platform"}},
	{from: "oidc", self: true, to: leaves, root: []string{"tenancy"}, pure: true},
	{from: "oidc", to: []string{"oidc", "platform", "tenancy/db", "tenancy/credential"}, root: []string{"tenancy"}},

	{from: "platform/fault"},
	{from: "platform/clock"},
	{from: "platform/id"},
	{from: "platform/limit"},
	{from: "platform/text", pure: true},
	{from: "platform/ratelimit", pure: true},
	// A package may also import its own sub-folders: see layerRule.
	{from: "platform", to: append([]string{"platform/limit"}, leaves...)},

	{from: "tests/sim", to: []string{"tests/sim", "platform"}},
	{from: "tests", to: []string{"apps", "actors", "publishing", "tenancy", "billing", "oidc", "platform", "tests"}},
}

// impure are the packages of the standard library that access the network, files, processes or
// databases.
var impure = []string{"net", "net/http", "net/rpc", "net/smtp", "os", "os/exec", "os/signal", "database/sql", "plugin", "syscall"}

// restriction lists the folders from which a package may be imported.
type restriction struct {
	path string
	from []string
}

// restricted lists the packages of this module that may be imported from fewer folders than the
// import plan allows.
var restricted = []restriction{
	{path: "crier/actors/cluster/store", from: []string{"actors/cluster"}},
	{path: "crier/billing/store", from: []string{"billing/service"}},
	{path: "crier/billing/service", from: []string{"apps/boot"}},
	{path: "crier/publishing/connector/all", from: []string{"apps/boot"}},
	{path: "crier/publishing/connector/conformance", from: []string{}},
	{path: "crier/tests/edgetest", from: []string{}},
	{path: "testing", from: []string{"tests", "publishing/connector/conformance"}},
	{path: "net/http/httptest", from: []string{"tests", "publishing/connector/conformance"}},
}

// vendors lists, for each library, the folders that may import it. No other libraries are allowed.
var vendors = []restriction{
	{path: "github.com/gofiber/", from: []string{"apps/edge"}},
	{path: "github.com/danielgtaylor/huma/", from: []string{"apps/edge"}},
	{path: "github.com/valyala/fasthttp", from: []string{"apps/edge"}},
	{path: "github.com/alecthomas/kong", from: []string{"apps/boot"}},
	{path: "github.com/asynkron/protoactor-go/", from: []string{"actors/org", "actors/cluster"}},
	{path: "google.golang.org/protobuf/", from: []string{"actors/org"}},
	{path: "google.golang.org/grpc", from: []string{"actors/cluster"}},
	{path: "github.com/jackc/pgx/", from: []string{"platform/pg", "platform/migrations", "platform/jobs", "publishing/*/store", "publishing/db", "tenancy/*/store", "tenancy/db", "tenancy/credential", "tenancy/entry", "oidc/*/store", "actors/cluster/store"}},
	{path: "github.com/pressly/goose/", from: []string{"platform/migrations"}},
	{path: "github.com/riverqueue/river/rivermigrate", from: []string{"platform/jobs", "platform/migrations"}},
	{path: "github.com/riverqueue/river/riverdriver/", from: []string{"platform/jobs", "platform/migrations"}},
	{path: "github.com/riverqueue/river", from: []string{"platform/jobs"}},
	{path: "github.com/redis/go-redis/", from: []string{"platform/redis"}},
	{path: "github.com/go-redis/redis_rate/", from: []string{"platform/redis"}},
	{path: "github.com/alicebob/miniredis/", from: []string{"tests/bench", "tests/crash"}},
	{path: "github.com/sethvargo/go-envconfig", from: []string{"platform/env"}},
	{path: "code.dny.dev/ssrf", from: []string{"platform/outbound"}},
	{path: "github.com/coder/websocket", from: []string{"platform/outbound", "publishing/connector"}},
	{path: "github.com/tink-crypto/tink-go/", from: []string{"platform/secret"}},
	{path: "github.com/prometheus/client_golang/", from: []string{"platform/telemetry", "apps/boot", "apps/edge", "apps/worker"}},
	{path: "github.com/alexedwards/argon2id", from: []string{"tenancy/proof"}},
	{path: "github.com/pquerna/otp", from: []string{"tenancy/proof", "tenancy/factor"}},
	{path: "github.com/go-jose/", from: []string{"tenancy/signin", "tenancy/registration"}},
	{path: "github.com/zitadel/oidc/v3/pkg/client/rp", from: []string{"tenancy/signin"}},
	{path: "github.com/zitadel/oidc/v3/pkg/oidc", from: []string{"tenancy/signin", "oidc/server"}},
	{path: "github.com/zitadel/oidc/v3/pkg/op", from: []string{"tests/oidctest", "oidc/server"}},
	{path: "github.com/modelcontextprotocol/go-sdk/", from: []string{"apps/edge/mcp"}},
	{path: "github.com/zitadel/oidc/v3/example/server/storage", from: []string{"tests/oidctest"}},
	{path: "golang.org/x/oauth2", from: []string{"tenancy/signin"}},
	{path: "github.com/wneessen/go-mail", from: []string{"platform/mail"}},
	{path: "github.com/emersion/", from: []string{"tests/smtptest"}},
	{path: "github.com/minio/minio-go/v7", from: []string{"platform/blob"}},
	{path: "github.com/johannesboyne/gofakes3", from: []string{"tests/s3test"}},
	{path: "github.com/andybalholm/brotli", from: []string{"publishing/file"}},
	{path: "github.com/klauspost/compress/zstd", from: []string{"publishing/file"}},
	{path: "golang.org/x/text/unicode/norm", from: []string{"publishing/file", "publishing/media"}},
	{path: "github.com/gabriel-vasile/mimetype", from: []string{"publishing/file"}},
	{path: "github.com/clipperhouse/uax29/v2/graphemes", from: []string{"publishing/connector", "publishing/file", "apps/sim/sandbox"}},
	{path: "github.com/btcsuite/btcd/", from: []string{"publishing/connector/nostr"}},
	{path: "github.com/yuin/goldmark", from: []string{"apps/edge/docs"}},
	{path: "github.com/tidwall/gjson", from: []string{"apps/edge/mcp", "apps/edge/api/post", "apps/edge/api/webhook"}},
	{path: "github.com/ory/dockertest/", from: []string{"tests/dbtest"}},
	{path: "github.com/google/uuid", from: []string{"platform", "apps/edge", "publishing", "tenancy/*/store", "oidc/*/store", "actors/cluster"}},
	{path: "golang.org/x/image/draw", from: []string{"publishing/file/picture"}},
	{path: "golang.org/x/net/dns/dnsmessage", from: []string{"tests/canary"}},
	{path: "golang.org/x/net/html", from: []string{"publishing"}},
	{path: "golang.org/x/text/width", from: []string{"platform/paste", "publishing/connector/links"}},
	{path: "golang.org/x/text/language", from: []string{"publishing/connector"}},
	{path: "golang.org/x/text/unicode/bidi", from: []string{"publishing/connector/links"}},
	{path: "golang.org/x/net/idna", from: []string{"publishing/connector"}},
	{path: "golang.org/x/net/publicsuffix", from: []string{"publishing/connector/links"}},
	{path: "golang.org/x/sync/", from: []string{"platform", "tenancy/signin", "oidc/client", "publishing/analytics", "tests"}},
	{path: "golang.org/x/time/rate", from: []string{"apps/worker", "publishing/analytics"}},
	{path: "golang.org/x/sys/", from: []string{"platform/clock", "tests/dbtest", "tests/pds"}},
	{path: "go.uber.org/goleak", from: []string{}},
	{path: "pgregory.net/rapid", from: []string{}},
}

// ban lists names of a package that may be used only in some folders.
type ban struct {
	// path is the import path, or "" for functions that need no import.
	path string
	// names may end in "*", which matches any suffix.
	names []string
	from  []string
	why   string
}

var bans = []ban{
	{path: "net/http", names: []string{"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "Client", "Transport"},
		from: []string{"platform/outbound"}, why: "every outgoing request passes the guard of platform/outbound"},
	{
		path: "net", names: []string{"Dial*"}, from: []string{"platform/outbound", "platform/pg"},
		why: "every outgoing request passes the guard of platform/outbound",
	},
	{
		path: "github.com/coder/websocket", names: []string{"Dial"}, from: []string{"platform/outbound"},
		why: "every outgoing request passes the guard of platform/outbound",
	},
	{path: "time", names: []string{"Now", "Since", "Until"}, from: []string{"platform/clock"}, why: "time is injected"},
	{
		path: "os", names: []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv"},
		from: []string{"platform/env"}, why: "configuration is read once, at the start",
	},
	{path: "fmt", names: []string{"Print*"}, from: []string{"apps"}, why: "only commands write to standard output"},
	{path: "", names: []string{"print", "println"}, why: "only commands write to standard output"},
	{path: "", names: []string{"panic"}, why: "return an error"},
	{path: "", names: []string{"init"}, why: "an import has no side effects"},
}

// exception permits one violation in one folder. An exception that is not needed fails the test.
type exception struct{ dir, what, why string }

var exceptions = []exception{
	{
		dir: "publishing/connector/conformance", what: "crier/platform/id",
		why: "test code: it makes organizations and channels for the connector under test",
	},
	{dir: "actors/org", what: "init", why: "the generated code registers the messages"},
	{dir: "apps/boot", what: "github.com/coder/websocket", why: "the port that it plugs names the Conn type"},
	{dir: "tests/bench", what: "github.com/coder/websocket", why: "a client of the benchmark names the Conn type"},
	{dir: "platform/mail", what: "net.Dialer", why: "the connection to the mail server that the operator configured"},
	{dir: "platform/clock", what: "crier/platform/env", why: "under the build tag crash it reads the clock offset"},
	{dir: "platform/failpoint", what: "crier/platform/env", why: "under the build tag crash it reads the path of the driver's request"},
	{dir: "platform/failpoint", what: "panic", why: "under the build tag crash it panics when the text of a post requests it"},
	{
		dir: "publishing/connector/sandbox", what: "crier/platform/failpoint",
		why: "under the build tag crash it panics when the text of a post requests it",
	},
	{dir: "tests/faultnet", what: "http.Transport", why: "its proxies forward to servers of the tests"},
	{dir: "tests/faultnet", what: "net.Dialer", why: "its proxies forward to servers of the tests"},
	{dir: "tests/oidctest", what: "github.com/go-jose/go-jose/v4", why: "the identity provider of the tests signs its tokens"},
	{dir: "tests/oidctest", what: "http.Client", why: "it follows the pages of the identity provider that it runs"},
	{dir: "tests/pds", what: "http.Transport", why: "a connection for each call to the real server"},
	{dir: "tests/pds", what: "http.Client", why: "a test helper that calls the real server directly"},
	{dir: "tests/pds", what: "os.Getenv", why: "CRIER_CACHE is read by the installer of the tests, which has no configuration"},
	{dir: "tests/publishtest", what: "crier/publishing/channel/store", why: "a test helper that stores rows directly"},
	{dir: "tests/publishtest", what: "crier/publishing/media/store", why: "a test helper that stores rows directly"},
	{dir: "tests/publishtest", what: "crier/publishing/post/store", why: "a test helper that stores rows directly"},
	{dir: "tests/publishtest", what: "crier/publishing/scheduler/store", why: "a test helper that claims and finishes posts directly"},
	{dir: "tests/publishtest", what: "crier/publishing/webhook/store", why: "a test helper that stores rows directly"},
	{dir: "tests/publishtest", what: "github.com/google/uuid", why: "a lease names its process by a UUID"},
	{dir: "tests/publishtest", what: "github.com/jackc/pgx/v5", why: "a test helper that reads and changes rows directly"},
	{dir: "tests/tenant", what: "crier/tenancy/organization/store", why: "a test helper that stores organizations directly"},
	{dir: "tests/tenant", what: "crier/tenancy/member/store", why: "a test helper that stores members directly"},
	{dir: "tests/tenancytest", what: "github.com/jackc/pgx/v5", why: "a test helper that reads and changes rows directly"},
	{dir: "tests/tenant", what: "time.Now", why: "organizations of tests are created at the current time"},
	{dir: "tests/publishtest", what: "time.Now", why: "rows of tests are made at the current time"},
	{dir: "tests/suite", what: "os.Setenv", why: "the race detector reads its options from GORACE at the start of a program"},
	{dir: "tests/suite", what: "os.Environ", why: "the test program starts again in the same environment"},
	{dir: "tests/bench", what: "os.Environ", why: "the measured programs run in the caller's environment"},
	{dir: "tests/bench", what: "github.com/jackc/pgx/v5", why: "it counts the statements of a loadTree service from outside"},
	{dir: "tests/bench", what: "github.com/jackc/pgx/v5/pgxpool", why: "a floor is the same work without the service, on many connections"},
	{dir: "tests/bench", what: "github.com/google/uuid", why: "it fills tables in bulk, without the service"},
	{dir: "tests/bench", what: "github.com/alexedwards/argon2id", why: "the floor of a log-in is the comparison of a password without the service"},
	{dir: "tests/bench", what: "http.Client", why: "the driver of the load, and the floor of a stream"},
	{dir: "tests/bench", what: "http.Transport", why: "the driver keeps a connection for each user"},
	{dir: "tests/bench", what: "net.Dialer", why: "the floor of a call is a connection without the service"},
	{dir: "tests/bench/empty", what: "github.com/gofiber/fiber/v2", why: "the empty program that the service is measured against"},
	{dir: "tests/crash", what: "http.Client", why: "it calls the service as an API client"},
	{dir: "tests/crash", what: "http.Transport", why: "its connections are to processes that it kills"},
	{dir: "tests/sandboxtest", what: "http.DefaultClient", why: "it scripts the sandbox platform on loopback"},
	{dir: "tests/sandboxtest", what: "http.Client", why: "it is the browser at the consent page of the sandbox"},
	{dir: "tests/canary", what: "net.Dialer", why: "the resolver of the tests asks their own name server"},
	{dir: "tests/call", what: "http.Client", why: "tests call the service and platforms as API clients"},
	{dir: "tests/crash", what: "net.DialTimeout", why: "it waits until a process that it started listens"},
	{dir: "tests/crash", what: "time.Now", why: "it drives real processes in real time"},
	{dir: "tests/crash", what: "time.Until", why: "it drives real processes in real time"},
	{dir: "tests/crash", what: "time.Since", why: "it drives real processes in real time"},
	{dir: "tests/crash", what: "github.com/jackc/pgx/v5", why: "it reads the database directly"},
	{dir: "tests/dbtest", what: "github.com/jackc/pgx/v5", why: "it creates and drops databases"},
	{dir: "tests/dbtest", what: "github.com/jackc/pgx/v5/pgconn", why: "it creates and drops databases"},
	{dir: "tests/edgetest", what: "github.com/prometheus/client_golang/prometheus", why: "every edge of a test has a registry of its own"},
	{dir: "tests/edgetest", what: "http.Transport", why: "tests call the edge as an API client"},
	{dir: "tests/edgetest", what: "net.Dial", why: "it sends requests that no HTTP client sends"},
	{dir: "tests/edgetest", what: "panic", why: "a fake breaks a handler when a test requests it"},
	{dir: "tests/sqltest", what: "github.com/jackc/pgx/v5", why: "it explains statements and fills tables directly"},
	{dir: "tests/relay", what: "github.com/coder/websocket", why: "the relay of the tests is a server"},
	{dir: "tests/relay", what: "github.com/btcsuite/btcd/btcec/v2/schnorr", why: "the relay of the tests checks signatures by itself"},
}

// topLevel lists the entries of the root; entries that begin with a dot are the configuration of
// tools.
var topLevel = []string{
	"actors/", "apps/", "billing/", "docs/", "oidc/", "ops/", "platform/", "publishing/", "tenancy/", "tests/",
	"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "staticcheck.conf", "Taskfile.yml", "go.mod", "go.sum",
}

// domains have packages store and service, which are imported under aliases such as poststore or
// billingservice.
var domains = []string{"publishing", "tenancy", "billing", "oidc"}
