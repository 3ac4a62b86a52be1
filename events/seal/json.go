package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// A sealed JSON value is a JSON string: "sealed:" and the base64 (RFC 4648, padded) of a sealed body. jsonBegins is what all of
// them begin with: base64 of the magic bytes is always "am1zM…".
const (
	jsonPrefix = "sealed:"
	jsonBegins = jsonPrefix + "am1zM"
)

// JSON encrypts a JSON value at rest with the current key. What it gives is a JSON string, so that it lies in a column of
// type jsonb where the value lay: alone, or as the member of an object.
func JSON(keys Keys, clear []byte, context string) ([]byte, error) {
	body, err := Seal(keys, AtRest, clear, context)
	if err != nil {
		return nil, err
	}
	return wrapJSON(body), nil
}

func wrapJSON(body []byte) []byte {
	return []byte(`"` + jsonPrefix + base64.StdEncoding.EncodeToString(body) + `"`)
}

// OpenJSON gives the value that a sealed one stands for; one that is not sealed is given back as it is. The error wraps
// [ErrNoKey] or [ErrTampered].
func OpenJSON(keys Keys, value []byte, context string) ([]byte, error) {
	body, sealed, err := unwrapJSON(value)
	if err != nil || !sealed {
		return value, err
	}
	return Open(keys, body, context)
}

// unwrapJSON gives the sealed body in a JSON value. It reports false for a value that is clear.
func unwrapJSON(value []byte) (body []byte, sealed bool, err error) {
	if !bytes.HasPrefix(value, []byte(`"`+jsonBegins)) {
		return nil, false, nil
	}
	var text string
	if err = json.Unmarshal(value, &text); err == nil {
		body, err = base64.StdEncoding.DecodeString(text[len(jsonPrefix):])
	}
	if err != nil {
		return nil, true, fmt.Errorf("open: %w: %w", ErrTampered, err)
	}
	return body, true, nil
}
