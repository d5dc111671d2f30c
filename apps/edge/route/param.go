package route

import (
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"crier/platform/fault"
)

// MaxPage is the highest valid page number.
const MaxPage = 1_000_000

// OptionalInt is an optional whole number in a query, kept as it was sent. huma does not parse it,
// so that the fault for an invalid number can name the bounds.
type OptionalInt struct {
	Text  string
	IsSet bool
}

// Schema returns the schema of a whole number.
func (OptionalInt) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeInteger} }

// Receiver implements huma.ParamWrapper. It returns the field that huma sets.
func (o *OptionalInt) Receiver() reflect.Value { return reflect.ValueOf(o).Elem().Field(0) }

// OnParamSet implements huma.ParamReactor. It records whether the query has the parameter.
func (o *OptionalInt) OnParamSet(isSet bool, _ any) { o.IsSet = isSet }

// Between returns the number, or the value of otherwise if the parameter is absent. If the
// parameter is not a whole number from least to most, Between returns a fault for the field called
// name.
func (o *OptionalInt) Between(name string, least, most, otherwise int) (int, []fault.Field) {
	if !o.IsSet {
		return otherwise, nil
	}
	n, err := strconv.Atoi(o.Text)
	if err != nil || n < least || n > most {
		rule := "must be a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
		return 0, []fault.Field{{Name: name, Message: rule}}
	}
	return n, nil
}
