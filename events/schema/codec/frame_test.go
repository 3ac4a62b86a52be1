package codec_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events/schema/codec"
	"github.com/vitrip/journeyman/events/schema/registry"
)

// fixed is a registry that gives id 1 to 6 to the catalog's schemas and knows no other.
type fixed struct{ texts map[string]string }

func (f fixed) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := func(status int, body string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
	}
	if req.Method == http.MethodPost {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		id := string(rune('1' + len(f.texts)))
		f.texts[id] = string(raw)
		return answer(http.StatusOK, `{"id":`+id+`}`), nil
	}
	if text, ok := f.texts[req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]]; ok {
		return answer(http.StatusOK, text), nil
	}
	return answer(http.StatusNotFound, `{"error_code":40403,"message":"Schema not found"}`), nil
}

// FuzzDecode_Frame: whatever stands in a record is read as a JSON object or refused.
func FuzzDecode_Frame(f *testing.F) {
	asks, err := registry.New(registry.Config{URLs: []string{"http://registry.invalid"}, Transport: fixed{map[string]string{}}})
	if err != nil {
		f.Fatal(err)
	}
	cat := parse(f, catalogYAML)
	c, err := codec.New(f.Context(), codec.Config{Catalog: cat, Registry: asks, Producer: "tester"})
	if err != nil {
		f.Fatal(err)
	}
	types := []string{"test.booking.confirmed", "test.payment.captured", "test.seat.assigned", "test.account.locked"}
	for n, data := range []string{`{"id":"x","n":1,"price":"1","at":0}`, `{"id":"x","n":1,"labels":{"a":"b"}}`, `{"id":"x","n":1}`, `{"id":"x"}`} {
		body, err := c.Encode(types[n], 1, []byte(data))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(n), body) //nolint:gosec // small
	}
	f.Add(uint8(0), []byte{0})
	f.Add(uint8(1), []byte{0, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		data, err := c.Decode(t.Context(), types[int(which)%len(types)], 1, body)
		if err == nil && !strings.HasPrefix(string(data), "{") {
			t.Errorf("%x was read as %s", body, data)
		}
	})
}
