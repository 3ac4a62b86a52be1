package sagas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FieldError says what is wrong with one field of a request. Make one with [Invalid].
type FieldError struct {
	Field  string `json:"field"`  // path such as "flight.offer" or "segments[2].amount"; "" means the body as a whole
	Reason string `json:"reason"` // starts with a verb: "is missing", "must be 1 or more"
}

// Error gives field and reason.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return "body " + e.Reason
	}
	return e.Field + " " + e.Reason
}

// Invalid is an error about one field of a request. Join several with errors.Join. The reason is
// shown to the partner: it must not repeat the value.
func Invalid(field, reason string) error { return &FieldError{Field: field, Reason: reason} }

const (
	maxDepth  = 32
	maxNumber = 64 // digits of one number
)

// Decode reads one JSON object into T, strictly: invalid UTF-8, a field T does not have (names
// match exactly), a field that stands twice, a value of the wrong type, a NUL in a string, nesting
// beyond 32 and data after the object are each refused with a [FieldError] that gives the path.
// null is read as absent. Missing fields are left zero: checking them is the caller's.
func Decode[T any](body []byte) (T, error) {
	var v T
	if err := scan(body, reflect.TypeFor[T]()); err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return v, Invalid(wrong.Field, "has the wrong type")
		}
		return v, Invalid("", "cannot be read: "+err.Error())
	}
	return v, nil
}

// scan walks a body without building it and checks it against t; a nil t accepts any JSON object.
func scan(body []byte, t reflect.Type) error {
	s := scanner{dec: json.NewDecoder(bytes.NewReader(body)), invalid: firstInvalid(body)}
	s.dec.UseNumber()
	if len(bytes.TrimSpace(body)) == 0 {
		return Invalid("", "is empty, want a JSON object")
	}
	tok, err := s.next("")
	if err != nil {
		return err
	}
	if tok != json.Delim('{') {
		return Invalid("", "must be a JSON object")
	}
	if err := s.object("", t, 1); err != nil {
		return err
	}
	if _, err := s.dec.Token(); err != io.EOF {
		return Invalid("", "has data after the JSON object")
	}
	if s.invalid >= 0 {
		return Invalid("", "is not valid UTF-8")
	}
	return nil
}

// firstInvalid is the offset of the first byte that is not UTF-8, -1 when there is none.
func firstInvalid(body []byte) int64 {
	for i := 0; i < len(body); {
		r, n := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && n == 1 {
			return int64(i)
		}
		i += n
	}
	return -1
}

type scanner struct {
	dec     *json.Decoder
	invalid int64
}

// next reads one token. An invalid byte inside it is reported under path.
func (s *scanner) next(path string) (json.Token, error) {
	tok, err := s.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, Invalid(path, "ends too early: the JSON is not complete")
		}
		return nil, Invalid(path, "is not JSON: "+err.Error())
	}
	if s.invalid >= 0 && s.dec.InputOffset() > s.invalid {
		return nil, Invalid(path, "is not valid UTF-8")
	}
	return tok, nil
}

func (s *scanner) object(path string, t reflect.Type, depth int) error {
	if depth > maxDepth {
		return Invalid(path, fmt.Sprintf("is nested deeper than %d", maxDepth))
	}
	seen := map[string]bool{}
	for s.dec.More() {
		tok, err := s.next(path)
		if err != nil {
			return err
		}
		name, ok := tok.(string)
		if !ok {
			return Invalid(path, "is not JSON: a field name must be a string")
		}
		at := name
		if path != "" {
			at = path + "." + name
		}
		if len(at) > 200 {
			at = at[:200]
		}
		if seen[name] {
			return Invalid(at, "stands twice")
		}
		seen[name] = true
		ft, known := fieldType(t, name)
		if !known {
			return Invalid(at, "is unknown")
		}
		if err := s.value(at, ft, depth+1); err != nil {
			return err
		}
	}
	_, err := s.next(path) // }
	return err
}

func (s *scanner) value(path string, t reflect.Type, depth int) error {
	tok, err := s.next(path)
	if err != nil {
		return err
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && (t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())) {
		t = nil // the type reads itself
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			if t != nil && t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
				return Invalid(path, "must be "+kindName(t))
			}
			return s.object(path, t, depth)
		}
		return s.array(path, t, depth)
	case string:
		if strings.ContainsRune(tok, 0) {
			return Invalid(path, "contains a NUL character")
		}
		if t != nil && t.Kind() != reflect.String {
			return Invalid(path, "must be "+kindName(t))
		}
	case json.Number:
		return checkNumber(path, tok.String(), t)
	case bool:
		if t != nil && t.Kind() != reflect.Bool {
			return Invalid(path, "must be "+kindName(t))
		}
	}
	return nil
}

func (s *scanner) array(path string, t reflect.Type, depth int) error {
	if depth > maxDepth {
		return Invalid(path, fmt.Sprintf("is nested deeper than %d", maxDepth))
	}
	var elem reflect.Type
	if t != nil {
		if t.Kind() != reflect.Slice {
			return Invalid(path, "must be "+kindName(t))
		}
		elem = t.Elem()
	}
	for i := 0; s.dec.More(); i++ {
		if err := s.value(path+"["+strconv.Itoa(i)+"]", elem, depth+1); err != nil {
			return err
		}
	}
	_, err := s.next(path) // ]
	return err
}

func checkNumber(path, n string, t reflect.Type) error {
	if len(n) > maxNumber {
		return Invalid(path, fmt.Sprintf("is longer than %d characters", maxNumber))
	}
	if t == nil {
		return nil
	}
	var err error
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err = strconv.ParseInt(n, 10, t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err = strconv.ParseUint(n, 10, t.Bits())
	case reflect.Float32, reflect.Float64:
		_, err = strconv.ParseFloat(n, t.Bits())
	default:
		if t == reflect.TypeFor[json.Number]() {
			return nil
		}
		return Invalid(path, "must be "+kindName(t))
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return Invalid(path, "is out of range")
	case err != nil:
		return Invalid(path, "must be "+kindName(t))
	}
	return nil
}

// fieldType finds the field of a struct by its JSON name, or the element type of a map. A nil t knows every name.
func fieldType(t reflect.Type, name string) (reflect.Type, bool) {
	if t == nil {
		return nil, true
	}
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			if ft, ok := fieldType(f.Type, name); ok {
				return ft, true
			}
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		if f.IsExported() && tag == name && tag != "-" {
			return f.Type, true
		}
	}
	return nil, false
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of 0 or more"
	default:
		return "a whole number"
	}
}
