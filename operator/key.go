package operator

import "strconv"

// Key is a key of the engine. In JSON it is a string, as in the engine's own API; "" when there is none.
type Key int64

// String gives the digits, "" for 0.
func (k Key) String() string {
	if k == 0 {
		return ""
	}
	return strconv.FormatInt(int64(k), 10)
}

// MarshalText is String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Key) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*k = 0
		return nil
	}
	n, err := ParseKey("key", string(text))
	*k = n
	return err
}

// ParseKey reads a key of the engine; field names it in the error.
func ParseKey(field, text string) (Key, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, &FieldError{Field: field, Value: text, Want: "a key of the engine, digits only"}
	}
	return Key(n), nil
}
