package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
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
		return nil, fmt.Errorf("Invalid JSON value: %s: the root must be an object", clip(text, 200)) //nolint:staticcheck // Zeebe's wording
	}
	d := Doc{}
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("Invalid JSON value: %s: %w", clip(text, 200), err) //nolint:staticcheck // Zeebe's wording
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("Invalid JSON value: %s: text after the object", clip(text, 200)) //nolint:staticcheck // Zeebe's wording
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

// jsonString is s as JSON text, without escaping for HTML.
func jsonString(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always marshals
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
