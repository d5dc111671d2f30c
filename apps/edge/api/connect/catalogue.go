package connect

import (
	"context"
	"strings"

	"crier/apps/edge/route"
	"crier/publishing/connector"
)

// ListPlatforms returns the endpoint that lists the platforms of this instance. The list is public,
// so it omits default values that are URLs.
func (a *API) ListPlatforms() route.Endpoint {
	return route.JSON(route.Describe("Connecting channels", "List the platforms of this instance"), a.catalogue)
}

// Catalogue lists the platforms of this instance. Social holds all of them; Article is always
// empty.
type Catalogue struct {
	Social  []Platform `json:"social"`
	Article []Platform `json:"article"`
}

// Platform is one entry of a Catalogue. IsExternal, IsWeb3 and IsChromeExtension are always false.
type Platform struct {
	Name              string          `json:"name"`
	Identifier        string          `json:"identifier"`
	ToolTip           string          `json:"toolTip,omitempty"`
	Editor            string          `json:"editor" enum:"none,normal,markdown,html"`
	IsExternal        bool            `json:"isExternal"`
	IsWeb3            bool            `json:"isWeb3"`
	IsChromeExtension bool            `json:"isChromeExtension"`
	CustomFields      []PlatformField `json:"customFields,omitempty" doc:"Form fields of a platform that is connected with credentials."`
}

// PlatformField is one field in the form of a platform that is connected with credentials.
type PlatformField struct {
	Key          string `json:"key"`
	Label        string `json:"label"`
	DefaultValue string `json:"defaultValue,omitempty"`
	Validation   string `json:"validation" doc:"A regular expression."`
	Type         string `json:"type" enum:"text,password"`
	Hint         string `json:"hint,omitempty"`
}

type catalogueOutput struct{ Body Catalogue }

func (a *API) catalogue(context.Context, *struct{}) (*catalogueOutput, error) {
	return &catalogueOutput{Body: catalogueOf(a.deps.Channels.Catalogue())}, nil
}

func catalogueOf(all []connector.Descriptor) Catalogue {
	out := Catalogue{Social: make([]Platform, 0, len(all)), Article: []Platform{}}
	for _, d := range all {
		p := Platform{Name: d.Name, Identifier: d.ID, ToolTip: d.ToolTip, Editor: d.Editor}
		for _, f := range d.Fields {
			if strings.Contains(f.DefaultValue, "://") {
				// The list is public, and the URL may belong to an internal network.
				f.DefaultValue = ""
			}
			p.CustomFields = append(p.CustomFields, PlatformField{
				Key: f.Key, Label: f.Label, DefaultValue: f.DefaultValue, Validation: f.Validation, Type: f.Type,
				Hint: f.Hint,
			})
		}
		out.Social = append(out.Social, p)
	}
	return out
}
