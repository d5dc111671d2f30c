// Command client makes calls with the client that oapi-codegen generated into package api. It reads
// {url, key, calls} from the standard input and writes a list of problems.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"client/api"
)

type call struct {
	ID         string      `json:"id"`
	Status     int         `json:"status"`
	Parameters []parameter `json:"parameters"`
	// Body is JSON, and File a file of a form. At most one of them is set.
	Body json.RawMessage `json:"body"`
	File []byte          `json:"file"`
	Key  string          `json:"key"`
}

type parameter struct {
	Name  string `json:"name"`
	In    string `json:"in"`
	Value any    `json:"value"`
}

type keyOf struct{}

func main() {
	var in struct {
		URL, Key string
		Calls    []call
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		log.Fatal(err)
	}
	client, err := api.NewClientWithResponses(in.URL, api.WithRequestEditorFn(
		func(ctx context.Context, r *http.Request) error {
			r.Header.Set("Authorization", ctx.Value(keyOf{}).(string))
			return nil
		},
	))
	if err != nil {
		log.Fatal(err)
	}
	problems := []string{}
	for _, c := range in.Calls {
		if c.Key == "" {
			c.Key = in.Key
		}
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), keyOf{}, c.Key), time.Minute)
		err := c.run(ctx, reflect.ValueOf(client))
		cancel()
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", c.ID, err))
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(problems); err != nil {
		log.Fatal(err)
	}
}

// run makes the call and checks its answer.
func (c call) run(ctx context.Context, client reflect.Value) error {
	name := ""
	for _, word := range strings.Split(c.ID, "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	if c.File != nil {
		name += "WithBody"
	}
	method := client.MethodByName(name + "WithResponse")
	if !method.IsValid() {
		return fmt.Errorf("the client has no %sWithResponse", name)
	}
	args, err := c.arguments(ctx, method.Type())
	if err != nil {
		return err
	}
	out := method.Call(args)
	if err, failed := out[1].Interface().(error); failed {
		return err
	}
	answer := out[0].Elem()
	body := answer.FieldByName("Body").Bytes()
	if got := answer.FieldByName("HTTPResponse").Interface().(*http.Response).StatusCode; got != c.Status {
		return fmt.Errorf("the answer is %d %s, want %d", got, body, c.Status)
	}
	decoded := answer.FieldByName(fmt.Sprintf("JSON%d", c.Status))
	if !decoded.IsValid() || decoded.IsNil() {
		return fmt.Errorf("the client has not decoded %s", body)
	}
	return accepted(decoded.Type().Elem(), body)
}

// arguments returns the arguments of a method, except its request editors.
func (c call) arguments(ctx context.Context, method reflect.Type) ([]reflect.Value, error) {
	args := []reflect.Value{reflect.ValueOf(ctx)}
	var path []string
	others := map[string]any{}
	for _, p := range c.Parameters {
		if p.In == "path" {
			path = append(path, fmt.Sprint(p.Value))
		} else {
			others[p.Name] = p.Value
		}
	}
	if c.File != nil {
		kind, form, err := c.form()
		return append(args, reflect.ValueOf(kind), reflect.ValueOf(form)), err
	}
	for i := 1; i < method.NumIn()-1; i++ {
		kind := method.In(i)
		if kind.Kind() == reflect.String {
			args = append(args, reflect.ValueOf(path[0]).Convert(kind))
			path = path[1:]
			continue
		}
		value, raw := reflect.New(kind), []byte(c.Body)
		if kind.Kind() == reflect.Pointer { // the parameters outside the path
			var err error
			if raw, err = json.Marshal(others); err != nil {
				return nil, err
			}
		} else if len(raw) == 0 {
			raw = []byte("{}")
		}
		if err := strict(raw, value.Interface()); err != nil {
			return nil, fmt.Errorf("the %v takes no %s: %w", kind, raw, err)
		}
		args = append(args, value.Elem())
	}
	return args, nil
}

func (c call) form() (contentType string, form io.Reader, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", "cat.png")
	if err != nil {
		return "", nil, err
	}
	if _, err := part.Write(c.File); err != nil {
		return "", nil, err
	}
	return w.FormDataContentType(), &b, w.Close()
}

// strict decodes JSON and refuses members that the type does not have.
func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// accepted returns an error unless a body decodes into a type without loss, and with known values
// for its enumerations.
func accepted(kind reflect.Type, body []byte) error {
	value := reflect.New(kind)
	if err := strict(body, value.Interface()); err != nil {
		return fmt.Errorf("%w in %s", err, body)
	}
	if unknown := unknownValue(value); unknown != "" {
		return fmt.Errorf("%s is not in its enumeration", unknown)
	}
	again, err := json.Marshal(value.Interface())
	if err != nil {
		return err
	}
	var sent, kept any
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	if err := json.Unmarshal(again, &kept); err != nil {
		return err
	}
	if !same(sent, kept) {
		return fmt.Errorf("%s is %s in the client", body, again)
	}
	return nil
}

// unknownValue returns a value in v that is not in its enumeration, or "" if there is none.
func unknownValue(v reflect.Value) string {
	if e, ok := v.Interface().(interface{ Valid() bool }); ok && v.Kind() == reflect.String && !e.Valid() {
		return fmt.Sprintf("%T %v", e, e)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return unknownValue(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if found := unknownValue(v.Index(i)); found != "" {
				return found
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if found := unknownValue(v.Field(i)); found != "" {
					return found
				}
			}
		}
	}
	return ""
}

// same compares two decoded values. Times are compared as times, because Go omits trailing zeros of
// a fraction.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			return false
		}
		for name := range a {
			if other, ok := m[name]; !ok || !same(a[name], other) {
				return false
			}
		}
		return true
	case []any:
		list, ok := b.([]any)
		if !ok || len(a) != len(list) {
			return false
		}
		for i := range a {
			if !same(a[i], list[i]) {
				return false
			}
		}
		return true
	case string:
		text, _ := b.(string)
		first, err := time.Parse(time.RFC3339, a)
		second, other := time.Parse(time.RFC3339, text)
		return a == b || err == nil && other == nil && first.Equal(second)
	default:
		return a == b
	}
}
