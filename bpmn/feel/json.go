package feel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

const maxJSONDepth = 500

// FromJSON reads one JSON value: objects become contexts in the order of their
// keys, numbers keep every digit. A repeated key keeps its last value.
func FromJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return Value{}, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Value{}, errors.New("read JSON: something follows the value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	tok, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Value{}, err
	}
	switch t := tok.(type) {
	case nil:
		return Value{}, nil
	case bool:
		return BoolValue(t), nil
	case string:
		return StringValue(t), nil
	case json.Number:
		n, err := parseNumber(t.String())
		if err != nil {
			return Value{}, fmt.Errorf("number %s is out of range", clip(t.String()))
		}
		return NumberValue(n), nil
	case json.Delim:
		if depth >= maxJSONDepth {
			return Value{}, fmt.Errorf("is nested deeper than %d", maxJSONDepth)
		}
		if t == '[' {
			items := []Value{}
			for d.More() {
				item, err := readJSON(d, depth+1)
				if err != nil {
					return Value{}, err
				}
				items = append(items, item)
			}
			_, err := d.Token()
			return ListValue(items...), err
		}
		c := &contextValue{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return Value{}, err
			}
			item, err := readJSON(d, depth+1)
			if err != nil {
				return Value{}, err
			}
			c.put(key.(string), item)
		}
		_, err := d.Token()
		return Value{kind: Context, v: c}, err
	}
	return Value{}, fmt.Errorf("unexpected token %v", tok)
}

// JSON renders v; see [Value.AppendJSON].
func (v Value) JSON() []byte { return v.AppendJSON(nil) }

// AppendJSON appends v as JSON. Numbers are written with all their digits and
// without trailing zeros, temporal values and ranges as their FEEL text,
// functions as null.
func (v Value) AppendJSON(dst []byte) []byte {
	switch x := v.v.(type) {
	case nil, *function:
		return append(dst, "null"...)
	case bool:
		if x {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case *apd.Decimal:
		return appendNumber(dst, x)
	case string:
		return appendString(dst, x)
	case []Value:
		dst = append(dst, '[')
		for i, item := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.AppendJSON(dst)
		}
		return append(dst, ']')
	case *contextValue:
		dst = append(dst, '{')
		for i, k := range x.keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, k)
			dst = append(dst, ':')
			dst = x.values[i].AppendJSON(dst)
		}
		return append(dst, '}')
	}
	return appendString(dst, v.text())
}

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) { return v.JSON(), nil }

func appendNumber(dst []byte, d *apd.Decimal) []byte {
	text := numberText(d)
	if strings.Contains(text, ".") && !strings.ContainsAny(text, "eE") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return append(dst, text...)
}

func appendString(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // cannot happen for a string
		return append(dst, `""`...)
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
