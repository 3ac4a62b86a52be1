package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"
)

// Doc is a variable document: JSON text per top-level name.
type Doc map[string]json.RawMessage

// ParseDoc reads a JSON object; blank text is the empty document. The error
// is in Zeebe's words ("Invalid JSON value: ...").
func ParseDoc(text string) (Doc, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if strings.TrimSpace(text)[0] != '{' {
		return nil, fmt.Errorf("Invalid JSON value: %s: the root must be an object", clip(text, 200)) //nolint:staticcheck,revive // Zeebe's wording
	}
	d := Doc{}
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("Invalid JSON value: %s: %w", clip(text, 200), err) //nolint:staticcheck,revive // Zeebe's wording
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("Invalid JSON value: %s: text after the object", clip(text, 200)) //nolint:staticcheck,revive // Zeebe's wording
	}
	for k, v := range d {
		d[k] = compact(v)
	}
	return d, nil
}

// Names returns the names in d, sorted.
func (d Doc) Names() []string {
	names := make([]string, 0, len(d))
	for k := range d {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}

// JSON is the document as one object with sorted names.
func (d Doc) JSON() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range d.Names() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(jsonString(k))
		b.WriteByte(':')
		b.Write(d[k])
	}
	b.WriteByte('}')
	return b.String()
}

func compact(v json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return v
	}
	return b.Bytes()
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// jsonString is s as JSON text, without escaping for HTML. Bytes that are no
// UTF-8 become the replacement character.
func jsonString(s string) json.RawMessage {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// jsonList is the items as one JSON array.
func jsonList(items []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}
