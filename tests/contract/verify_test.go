package contract

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// verified is a delivery as a receiver sees it, with the expected result.
type verified struct {
	name, want string

	Secret    string `json:"secret"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Signature string `json:"signature"`
	Body      string `json:"body"`
	Now       int64  `json:"now"`
}

// TestVerify_AcceptsOnlyGenuineDeliveries runs the code on the webhooks page on deliveries that the
// service signed, both unchanged and changed.
func TestVerify_AcceptsOnlyGenuineDeliveries(t *testing.T) {
	t.Parallel()
	box := &inbox{}
	server := httptest.NewServer(box)
	t.Cleanup(server.Close)
	r := start(t, map[string]string{"OUTBOUND_ALLOW": strings.TrimPrefix(server.URL, "http://")})
	cases := append(r.deliveries(t, server.URL, box), r.documentedDelivery(t))
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.samples(t, "/docs/webhooks") {
		if s.operation != "verify" {
			continue
		}
		t.Run(s.language, func(t *testing.T) {
			t.Parallel()
			h, ok := verifiers[s.language]
			if !ok {
				t.Fatalf("got code in %s, want a test that runs it", s.language)
			}
			dir := t.TempDir()
			files := h.files(s.code)
			write(t, dir, files)
			got := strings.Fields(execute(t, dir, input, nil, h.command(t)...))
			if len(got) != len(cases) {
				t.Fatalf("got the answers %q, want %d", got, len(cases))
			}
			for i, c := range cases {
				if got[i] != c.want {
					t.Errorf("%s is %s, want %s", c.name, got[i], c.want)
				}
			}
		})
	}
}

const (
	accepted    = "accepted"
	refusedWord = "refused"
)

// deliveries returns deliveries of the service from before and after a rotation of the secret, and
// altered copies.
func (r *rig) deliveries(t *testing.T, url string, box *inbox) []verified {
	t.Helper()
	o := r.organization(t)
	made := read[hook](t, o.do(t, http.MethodPost, "/webhooks", m{"name": "Receiver", "url": url}).want(t, http.StatusCreated))
	plain := o.delivered(t, made, box, 1)
	rotated := read[hook](t, o.do(t, http.MethodPost, "/webhooks/"+made.ID+"/rotate-secret", m{}).want(t, http.StatusCreated))
	both := o.delivered(t, made, box, 2)
	if n := len(strings.Fields(both.Signature)); n != 2 {
		t.Fatalf("got %d signatures after the rotation, want 2: %s", n, both.Signature)
	}
	change := func(name, want string, d verified, change func(*verified)) verified {
		d.name, d.want = name, want
		change(&d)
		return d
	}
	// forge signs with a key that a receiver without a configured secret might use by mistake.
	forge := func(secret string, key []byte) func(*verified) {
		return func(d *verified) {
			mac := hmac.New(sha256.New, key)
			fmt.Fprintf(mac, "%s.%s.%s", d.ID, d.Timestamp, d.Body)
			d.Secret, d.Signature = secret, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
		}
	}
	short := []byte(strings.Repeat("k", 23))
	fiveMinutes := int64(5 * time.Minute / time.Second)
	return []verified{
		change("a delivery", accepted, plain, func(*verified) {}),
		change("a delivery of almost five minutes ago", accepted, plain, func(d *verified) { d.Now += fiveMinutes - 1 }),
		change("the first secret after a rotation", accepted, both, func(*verified) {}),
		change("the second secret after a rotation", accepted, both, func(d *verified) { d.Secret = rotated.Secret }),
		change("a delivery of another secret", refusedWord, plain, func(d *verified) { d.Secret = rotated.Secret }),
		change("a wrong signature", refusedWord, plain, func(d *verified) { d.Signature = "v1," + strings.Repeat("A", 43) + "=" }),
		change("a signature of another version", refusedWord, plain, func(d *verified) { d.Signature = "v2" + strings.TrimPrefix(d.Signature, "v1") }),
		change("no signature", refusedWord, plain, func(d *verified) { d.Signature = "" }),
		change("a changed body", refusedWord, plain, func(d *verified) { d.Body += " " }),
		change("a changed id", refusedWord, plain, func(d *verified) { d.ID += "0" }),
		change("a changed timestamp", refusedWord, plain, func(d *verified) { d.Timestamp = strconv.FormatInt(d.Now+1, 10) }),
		change("a timestamp that is no number", refusedWord, plain, func(d *verified) { d.Timestamp = "now" }),
		change("a timestamp of a thousand digits", refusedWord, plain, func(d *verified) { d.Timestamp = strings.Repeat("9", 1000) }),
		change("a timestamp of nineteen digits", refusedWord, plain, func(d *verified) { d.Timestamp = strings.Repeat("9", 19) }),
		change("a timestamp in other digits", refusedWord, plain, func(d *verified) { d.Timestamp = "١٧٠٠٠٠٠٠٠٠" }),
		change("no timestamp", refusedWord, plain, func(d *verified) { d.Timestamp = "" }),
		change("no id", refusedWord, plain, func(d *verified) { d.ID = "" }),
		change("an empty secret", refusedWord, plain, forge("", nil)),
		change("a secret without its key", refusedWord, plain, forge("whsec_", nil)),
		change("a secret that is hidden", refusedWord, plain, forge("***", nil)),
		change("a hidden key", refusedWord, plain, forge("whsec_***", nil)),
		change("a key of 23 bytes", refusedWord, plain, forge("whsec_"+base64.StdEncoding.EncodeToString(short), short)),
		change("a key with characters that are not base64", refusedWord, plain, func(d *verified) { d.Secret += "!" }),
		change("a delivery of more than five minutes ago", refusedWord, plain, func(d *verified) { d.Now += fiveMinutes + 1 }),
		change("a delivery of more than five minutes ahead", refusedWord, plain, func(d *verified) { d.Now -= fiveMinutes + 1 }),
	}
}

// documentedDelivery returns the delivery that the webhooks page shows.
func (r *rig) documentedDelivery(t *testing.T) verified {
	t.Helper()
	page, err := html.Parse(strings.NewReader(org{rig: r}.get(t, "/docs/webhooks").want(t, http.StatusOK).Body))
	if err != nil {
		t.Fatal(err)
	}
	d := verified{name: "the delivery of the page", want: accepted}
	for n := range page.Descendants() {
		switch {
		case attribute(n, "id") == "delivery-headers":
			for line := range strings.Lines(inner(n)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				switch strings.ToLower(name) {
				case "webhook-id":
					d.ID = value
				case "webhook-timestamp":
					d.Timestamp = value
				case "webhook-signature":
					d.Signature = value
				}
			}
		case attribute(n, "id") == "delivery-body":
			d.Body = inner(n)
		case attribute(n, "id") == "delivery-now":
			if d.Now, err = strconv.ParseInt(inner(n), 10, 64); err != nil {
				t.Fatal(err)
			}
		case n.Data == "code" && strings.HasPrefix(inner(n), "whsec_"):
			d.Secret = inner(n)
		}
	}
	return d
}

// inner returns the text in an element.
func inner(n *html.Node) (text string) {
	for child := range n.Descendants() {
		if child.Type == html.TextNode {
			text += child.Data
		}
	}
	return text
}

// delivered sends a test delivery to the webhook and returns it as the receiver's nth call.
func (o org) delivered(t *testing.T, h hook, box *inbox, n int) verified {
	t.Helper()
	o.do(t, http.MethodPost, "/webhooks/"+h.ID+"/test", nil).want(t, http.StatusCreated)
	calls := func() int {
		box.mu.Lock()
		defer box.mu.Unlock()
		return len(box.got)
	}
	eventually(t, "the delivery", func() bool { return calls() >= n }, func() any { return calls() })
	box.mu.Lock()
	defer box.mu.Unlock()
	header := box.got[n-1]
	at, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return verified{
		Secret: h.Secret, ID: header.Get("webhook-id"), Timestamp: header.Get("webhook-timestamp"),
		Signature: header.Get("webhook-signature"), Body: box.body[n-1], Now: at,
	}
}

// verifier runs code that verifies deliveries. The code reads them from the standard input and
// prints one word for each.
type verifier struct {
	files   func(code string) map[string]string
	command func(t *testing.T) []string
}

var verifiers = map[string]verifier{
	"go": {
		files: func(code string) map[string]string {
			return map[string]string{"go.mod": "module receiver\n\ngo 1.26\n", "verify.go": strings.Replace(code, "package webhook", "package main", 1), "main.go": verifyGo}
		},
		command: func(t *testing.T) []string { return []string{program(t, "go"), "run", "."} },
	},
	"typescript": {
		files: func(code string) map[string]string {
			return map[string]string{"package.json": `{"type": "module"}`, "verify.ts": code, "main.ts": verifyTypeScript}
		},
		command: func(t *testing.T) []string { return []string{node(t), "main.ts"} },
	},
	"python": {
		files: func(code string) map[string]string {
			return map[string]string{"verify.py": code, "main.py": verifyPython}
		},
		command: func(t *testing.T) []string { return []string{program(t, "python3"), "main.py"} },
	},
	"php": {
		files: func(code string) map[string]string {
			return map[string]string{"verify.php": code, "main.php": verifyPHP}
		},
		command: func(t *testing.T) []string { return []string{program(t, "php"), "main.php"} },
	},
}

const verifyGo = `package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	var all []struct {
		Secret, ID, Timestamp, Signature, Body string
		Now                                    int64
	}
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		panic(err)
	}
	for _, d := range all {
		h := http.Header{}
		h.Set("webhook-id", d.ID)
		h.Set("webhook-timestamp", d.Timestamp)
		h.Set("webhook-signature", d.Signature)
		if Verify(d.Secret, h, []byte(d.Body), time.Unix(d.Now, 0)) == nil {
			fmt.Println("accepted")
		} else {
			fmt.Println("refused")
		}
	}
}
`

const verifyTypeScript = `import { readFileSync } from "node:fs";
import { verify } from "./verify.ts";

for (const d of JSON.parse(readFileSync(0, "utf8"))) {
  const headers = { "webhook-id": d.id, "webhook-timestamp": d.timestamp, "webhook-signature": d.signature };
  try {
    verify(d.secret, headers, Buffer.from(d.body), new Date(d.now * 1000));
    console.log("accepted");
  } catch {
    console.log("refused");
  }
}
`

const verifyPython = `import json
import sys

from verify import verify

for d in json.load(sys.stdin):
    headers = {"webhook-id": d["id"], "webhook-timestamp": d["timestamp"], "webhook-signature": d["signature"]}
    try:
        verify(d["secret"], headers, d["body"].encode(), d["now"])
        print("accepted")
    except ValueError:
        print("refused")
`

const verifyPHP = `<?php
require 'verify.php';
foreach (json_decode(file_get_contents('php://stdin'), true) as $d) {
    $headers = ['webhook-id' => $d['id'], 'webhook-timestamp' => $d['timestamp'], 'webhook-signature' => $d['signature']];
    try {
        verify($d['secret'], $headers, $d['body'], $d['now']);
        echo "accepted\n";
    } catch (RuntimeException $e) {
        echo "refused\n";
    }
}
`
