package docs

import (
	"encoding/json"
	"strings"
)

// PublicDocumentPath is the path of the public API's OpenAPI document. No operation of the public
// API has this path.
const PublicDocumentPath = publicPrefix + "openapi.json"

// aliasNote describes the aliases of the public API in the public document.
const aliasNote = "Every route is also served below /api/public/v1, for clients that use this prefix. There, GET " +
	"/posts returns {\"posts\": [...]} instead of a plain list."

// publicDocument returns the part of the OpenAPI document that describes the public API: its
// operations and the schemas that they use. It adds the service's URL and, as tags, the reference's
// sections.
func publicDocument(document []byte, base string) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	doc["servers"] = []any{map[string]any{"url": base}}
	if info, ok := doc["info"].(map[string]any); ok {
		text, _ := info["description"].(string)
		info["description"] = text + "\n\n" + aliasNote
	}
	paths, _ := doc["paths"].(map[string]any)
	used := map[string]bool{}
	for path, methods := range paths {
		if !isPublic(path) {
			delete(paths, path)
			continue
		}
		for _, op := range methods.(map[string]any) {
			used[sectionOf(op.(map[string]any))] = true
		}
	}
	var tags []any
	for _, name := range order {
		if used[name] {
			tags = append(tags, map[string]any{"name": name})
		}
	}
	doc["tags"] = tags
	components, _ := doc["components"].(map[string]any)
	all, _ := components["schemas"].(map[string]any)
	schemas := map[string]any{}
	useSchemas(paths, all, schemas)
	components["schemas"] = schemas
	security, _ := components["securitySchemes"].(map[string]any)
	components["securitySchemes"] = map[string]any{"key": security["key"]}
	return json.Marshal(doc)
}

// isPublic reports whether a path belongs to the public API. It returns false for aliases.
func isPublic(path string) bool {
	return strings.HasPrefix(path, publicPrefix) && path != PublicDocumentPath
}

// sectionOf returns the section of a decoded operation, which is its first tag.
func sectionOf(op map[string]any) string {
	tags, _ := op["tags"].([]any)
	if len(tags) == 0 {
		return ""
	}
	section, _ := tags[0].(string)
	return section
}

const schemaPrefix = "#/components/schemas/"

// useSchemas copies from all to used the schemas that the decoded JSON value v refers to, directly
// or through other schemas.
func useSchemas(v any, all, used map[string]any) {
	switch value := v.(type) {
	case map[string]any:
		ref, _ := value["$ref"].(string)
		name, isSchema := strings.CutPrefix(ref, schemaPrefix)
		if isSchema && used[name] == nil {
			used[name] = all[name]
			useSchemas(all[name], all, used)
		}
		for _, member := range value {
			useSchemas(member, all, used)
		}
	case []any:
		for _, member := range value {
			useSchemas(member, all, used)
		}
	}
}
