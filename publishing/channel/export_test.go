package channel

import (
	"crier/publishing/connector"
)

// FormFields returns the fields of a connect form as the connector gets them.
func FormFields(d connector.Descriptor, sent map[string]string) (map[string]string, error) {
	return formFields(d, sent)
}
