package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// read decodes a JSON body into dst; unknown fields and other shapes are a 400.
// An empty body is fine when optional is set.
func read(r *http.Request, dst any, optional bool) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return problemf(http.StatusBadRequest, "Request body could not be read: %v", err)
	}
	if len(data) > maxBody {
		return problemf(http.StatusRequestEntityTooLarge, "Request body is larger than %d bytes.", maxBody)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		if optional {
			return nil
		}
		return problemf(http.StatusBadRequest, "Required request body is missing.")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(dst); err != nil {
		return unreadable(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return problemf(http.StatusBadRequest, "Request body holds more than one JSON value.")
	}
	return nil
}

func unreadable(err error) *problemError {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return problemf(http.StatusBadRequest, "Request property [%s] cannot be parsed", typed.Field)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return problemf(http.StatusBadRequest, "Request property [%s] cannot be parsed", strings.Trim(name, `"`))
	}
	var p *problemError
	if errors.As(err, &p) {
		return p
	}
	return problemf(http.StatusBadRequest, "Request body cannot be parsed: %v", err)
}

// vars reads a variables object; null and absent are the empty document.
type vars struct{ doc core.Doc }

// UnmarshalJSON implements json.Unmarshaler.
func (v *vars) UnmarshalJSON(b []byte) error {
	if string(bytes.TrimSpace(b)) == "null" {
		return nil
	}
	d, err := core.ParseDoc(string(b))
	if err != nil {
		return problemf(http.StatusBadRequest, "Request property [variables] cannot be parsed: %v", err)
	}
	v.doc = d
	return nil
}

// key is a key on the wire: a string of digits; a bare number is taken too.
type key int64

// MarshalJSON implements json.Marshaler.
func (k key) MarshalJSON() ([]byte, error) {
	return []byte(strconv.Quote(strconv.FormatInt(int64(k), 10))), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (k *key) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return problemf(http.StatusBadRequest, "The provided key '%s' is not a valid key. Expected a numeric value.", strings.Trim(string(b), `"`))
	}
	*k = key(n)
	return nil
}

// number is a whole number; clients of the REST API send large ones as text.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return problemf(http.StatusBadRequest, "Request property cannot be parsed: '%s' is not a whole number", strings.Trim(string(b), `"`))
	}
	*n = number(v)
	return nil
}

func (n number) milliseconds() time.Duration { return core.Milliseconds(int64(n)) }

// pathKey reads {key} of the route; name is its name in the API.
func pathKey(r *http.Request, name string) (int64, error) {
	text := r.PathValue("key")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, problemf(http.StatusBadRequest, "Failed to convert '%s' with value: '%s'", name, text)
	}
	return n, nil
}

// tenant refuses all tenants but the default one.
func tenant(id string) error {
	if id == "" || id == DefaultTenant {
		return nil
	}
	return problemf(http.StatusBadRequest, "Expected to handle request with tenant identifier '%s', but multi-tenancy is disabled", id)
}
