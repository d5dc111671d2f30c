// Package nostr publishes signed notes to the relays of the Nostr network.
package nostr

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/btcsuite/btcd/btcutil/bech32"

	"crier/publishing"
	"crier/publishing/connector"
)

const (
	maxLength      = 100_000 // code points; many relays have a lower limit, often 64 KB
	maxImages      = 20
	maxVideos      = 4
	maxName        = 100             // characters
	connectTimeout = 8 * time.Second // a user is waiting for Connect
)

// Connector is the Nostr connector. It holds no state. Its accounts have GradeIdempotent.
type Connector struct{}

// New returns a Nostr connector. A channel's key and relays are in its credential.
func New() *Connector { return &Connector{} }

var _ connector.Connector = (*Connector)(nil)

// Describe returns the descriptor. A relay may have a limit lower than MaxLength and reject longer
// texts.
func (c *Connector) Describe() connector.Descriptor {
	return connector.Descriptor{
		ID: "nostr", Name: "Nostr", ToolTip: "Publishes notes with your key to the relays that you list.",
		Capabilities: []string{"text", "image", "video"},
		Fields: []connector.Field{
			{
				Key: "key", Label: "Private key", Type: "password",
				Hint:       "nsec1… or 64 hexadecimal digits",
				Word:       true,
				Validation: `^\s*([0-9a-fA-F]{64}|nsec1[02-9ac-hj-np-z]{58}|NSEC1[02-9AC-HJ-NP-Z]{58})\s*$`,
			},
			{
				Key: "relays", Label: "Relays", DefaultValue: defaultRelays, Type: "text",
				Hint:       "Relay addresses, separated by commas",
				Validation: `^[\s,]*(wss?:\/\/[^\s,]+([\s,]+wss?:\/\/[^\s,]+)*[\s,]*)?$`,
			},
			{
				Key: "name", Label: "Name", Type: "text",
				Hint:       "The name to show for this channel; leave empty to use the profile's name",
				Validation: `^.{0,100}$`,
			},
			{
				Key: "picture", Label: "Picture", Type: "text",
				Hint:       "The address of a picture; leave empty to use the profile's picture",
				Validation: `^(https?:\/\/\S+)?$`,
			},
		},
		Editor: "normal", MaxLength: maxLength, Unit: connector.Runes,
		Media: connector.MediaRules{MaxImages: maxImages, MaxVideos: maxVideos, Mixed: true},
		Grade: publishing.GradeIdempotent,
		Rules: "Plain text of up to 100000 characters, without Markdown or HTML; " +
			"many relays refuse notes larger than 64 KB. Up to 20 images and 4 videos are " +
			"added as addresses at the end of the text. Threads are chains of replies. " +
			"Published notes cannot be changed.",
	}
}

// Connect returns the account that belongs to the key. The name and picture come from the form. If
// one is empty in the form, it comes from the profile on the relays. Connect returns an error if no
// relay can be reached, and KindContent if the key, a relay, the name or the picture is invalid.
func (c *Connector) Connect(
	ctx context.Context, env connector.Env, fields map[string]string,
) (connector.Connected, error) {
	key, err := parseKey(fields["key"])
	if err != nil {
		return connector.Connected{}, err
	}
	relays, err := parseRelays(fields["relays"])
	if err != nil {
		return connector.Connected{}, err
	}
	who := signer{key: key, pub: publicKey(key), relays: relays}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	shown, err := who.fetchProfile(ctx, env)
	if err != nil {
		return connector.Connected{}, err
	}
	account, err := who.account(fields, shown)
	if err != nil {
		return connector.Connected{}, err
	}
	sealed, err := json.Marshal(credential{Key: hex.EncodeToString(key.Serialize()), Relays: relays})
	return connector.Connected{Account: account, Credential: sealed}, err
}

func (w signer) account(fields map[string]string, shown profile) (connector.Account, error) {
	name, picture := strings.TrimSpace(fields["name"]), strings.TrimSpace(fields["picture"])
	if utf8.RuneCountInString(name) > maxName {
		return connector.Account{}, contentError("The name is too long: at most 100 characters.")
	}
	if picture != "" && !webAddress(picture) {
		return connector.Account{}, contentError("The picture must be an address like https://example.com/me.png.")
	}
	pub, err := hex.DecodeString(w.pub)
	if err != nil {
		return connector.Account{}, err
	}
	npub, err := bech32.EncodeFromBase256("npub", pub)
	if err != nil {
		return connector.Account{}, err
	}
	if name == "" {
		name = shown.name(npub[:12] + "…" + npub[len(npub)-4:])
	}
	if picture == "" && webAddress(shown.Picture) {
		picture = shown.Picture
	}
	return connector.Account{
		ID: w.pub, Name: name, Profile: npub, Picture: picture, Grade: publishing.GradeIdempotent,
		Destination: connector.Destination(w.relays...),
	}, nil
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(s) <= 2000
}

// profile is the content of a kind 0 event. The event may have been written by any client.
type profile struct {
	Display string `json:"display_name"`
	Short   string `json:"name"`
	Picture string `json:"picture"`
}

func (p profile) name(otherwise string) string {
	for _, name := range []string{p.Display, p.Short} {
		name = strings.TrimSpace(name)
		if name != "" && utf8.RuneCountInString(name) <= maxName {
			return name
		}
	}
	return otherwise
}

// fetchProfile connects to every relay and returns the newest valid profile. It returns an error if
// no relay can be reached.
func (w signer) fetchProfile(ctx context.Context, env connector.Env) (profile, error) {
	type found struct {
		err    error // from connecting
		events []event
	}
	all := askAll(ctx, w.relays, func(ctx context.Context, url string) found {
		l, err := dial(ctx, env, w, url)
		if err != nil {
			return found{err: err}
		}
		defer l.close()
		events, _ := l.query(ctx, map[string]any{"authors": []string{w.pub}, "kinds": []int{kindProfile}, "limit": 1})
		return found{events: events}
	}, func(f found) bool { return f.err == nil }, func(_ string, err error) found { return found{err: err} })
	var newest event
	var failures []failure
	for i, f := range all {
		if f.err != nil {
			failures = append(failures, unreached(w.relays[i], f.err))
		}
		for _, e := range f.events {
			if e.PubKey == w.pub && e.Kind == kindProfile && e.CreatedAt >= newest.CreatedAt && e.valid() {
				newest = e
			}
		}
	}
	if len(failures) == len(all) {
		return profile{}, combine("None of the relays can be reached", failures)
	}
	var shown profile
	if newest.ID != "" && json.Unmarshal([]byte(newest.Content), &shown) != nil {
		// an invalid profile counts as none
		return profile{}, nil
	}
	return shown, nil
}

// Validate applies the descriptor's rules, and the rules for the text and the media taken together.
func (c *Connector) Validate(draft connector.Draft) []connector.Problem {
	d := c.Describe()
	var out []connector.Problem
	for i, part := range draft.Parts {
		problems := connector.Check(d, connector.Draft{Parts: []connector.DraftPart{part}}, 0)
		text := connector.Length(part.Text, d.Unit)
		if whole := connector.Length(content(part.Text, part.Media), d.Unit); text <= maxLength && whole > maxLength {
			const message = "The text is too long together with the addresses of its images and videos."
			problems = append(problems, connector.Problem{Message: message})
		}
		if unclear := textProblem(part.Text, part.Media); unclear != "" {
			problems = append(problems, connector.Problem{Message: unclear})
		}
		for _, p := range problems {
			out = append(out, connector.Problem{Part: i, Message: p.Message})
		}
	}
	return out
}
