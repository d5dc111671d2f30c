package docs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"html/template"
	"path"
	"strings"

	"crier/apps/edge/docs/console"
)

// consolePolicy is the content security policy of the console. console/README.md has the reason for each directive.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	typeScript = "text/javascript; charset=utf-8"
	typeStyle  = "text/css; charset=utf-8"
)

// consoleView is what the template of the console gets.
type consoleView struct {
	Title, Root                                        string
	ElementsStyle, ElementsScript, OwnStyle, OwnScript string
}

// addConsole adds the page of the console and its files.
func (s *Site) addConsole(v view) error {
	c := consoleView{
		Title: v.Title, Root: v.Root,
		ElementsStyle: "elements-" + console.Version + ".css", ElementsScript: "elements-" + console.Version + ".js",
	}
	if err := s.addLibrary(c.ElementsStyle, typeStyle); err != nil {
		return err
	}
	if err := s.addLibrary(c.ElementsScript, typeScript); err != nil {
		return err
	}
	var err error
	if c.OwnStyle, err = s.addOwn("console.css", typeStyle); err != nil {
		return err
	}
	if c.OwnScript, err = s.addOwn("console.js", typeScript); err != nil {
		return err
	}
	return s.addConsolePage(c)
}

func (s *Site) addConsolePage(c consoleView) error {
	t, err := template.ParseFS(pageFiles, "pages/console.html")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "console", c); err != nil {
		return err
	}
	page, err := newAsset("text/html; charset=utf-8", revalidate, b.Bytes())
	if err != nil {
		return err
	}
	page.policy = consolePolicy
	s.pages["console"] = page
	return nil
}

// addLibrary adds a file that is compressed already. The last four bytes of one are its size before.
func (s *Site) addLibrary(name, contentType string) error {
	compressed, err := console.Files.ReadFile(name + ".gz")
	if err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(compressed[len(compressed)-4:])
	s.files[name] = compressedAsset(contentType, immutable, compressed, int(size))
	return nil
}

// addOwn adds a file of ours under a name with a hash of its content, and returns the name.
func (s *Site) addOwn(file, contentType string) (name string, err error) {
	content, err := console.Files.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	extension := path.Ext(file)
	name = strings.TrimSuffix(file, extension) + "-" + hex.EncodeToString(sum[:6]) + extension
	s.files[name], err = newAsset(contentType, immutable, content)
	return name, err
}
