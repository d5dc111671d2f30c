package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"

	"crier/apps/edge/docs/console"
	"crier/apps/edge/page"
)

// consoleNeeds returns what the console's content security policy must allow. console/README.md
// gives the reason for each entry.
func consoleNeeds() []page.Need {
	return []page.Need{
		page.Scripts(page.Self), page.Styles(page.Self), page.Connections(page.Self), page.Images(page.Self),
	}
}

const (
	typeScript = "text/javascript; charset=utf-8"
	typeStyle  = "text/css; charset=utf-8"
)

// consoleView is the data for the console's template.
type consoleView struct {
	Title, Root                                        string
	ElementsStyle, ElementsScript, OwnStyle, OwnScript string
}

// addConsole adds the console's page and its files.
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
	files, err := fs.Sub(pageFiles, "pages")
	if err != nil {
		return err
	}
	s.pages["console"], err = page.New(files, "console", consoleNeeds()...).Asset(c)
	return err
}

// addLibrary adds a file of the console's library. The file is already compressed.
func (s *Site) addLibrary(name, contentType string) error {
	compressed, err := console.Files.ReadFile(name + ".gz")
	if err != nil {
		return err
	}
	s.files[name], err = page.CompressedAsset(page.Kind{Type: contentType, Immutable: true}, compressed)
	return err
}

// addOwn adds one of our own files under a name that contains a hash of the file's content. It
// returns that name. Example: console-0123456789ab.js
func (s *Site) addOwn(file, contentType string) (name string, err error) {
	content, err := console.Files.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	extension := path.Ext(file)
	name = strings.TrimSuffix(file, extension) + "-" + hex.EncodeToString(sum[:6]) + extension
	s.files[name], err = page.NewAsset(page.Kind{Type: contentType, Immutable: true}, content)
	return name, err
}
