// Package rest is a small client of the Orchestration Cluster REST API v2 of Camunda 8.8: the reads that operators and the
// runtime need, and a few acts. Keys are strings on the wire and int64 here. Searches are eventually consistent.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config says where the API is. Base is needed.
type Config struct {
	Base  string                                    // for example "http://localhost:8080", without "/v2"
	Token func(ctx context.Context) (string, error) // bearer token; nil = none
	HTTP  *http.Client                              // nil = one with a 10 s time-out
}

// Client is safe for concurrent use.
type Client struct {
	base string
	cfg  Config
}

// New checks cfg and makes a client. It makes no call.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.Base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("rest base %q: want an http or https URL", cfg.Base)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: 10 * time.Second}
	}
	return &Client{base: strings.TrimSuffix(cfg.Base, "/") + "/v2", cfg: cfg}, nil
}

// Error is an answer other than success, with what its problem document says.
type Error struct {
	Call   string // method and path
	Status int
	Title  string
	Detail string
}

// Error gives call, status and detail.
func (e *Error) Error() string {
	return fmt.Sprintf("rest %s: %d %s: %s", e.Call, e.Status, e.Title, e.Detail)
}

// IsNotFound reports whether the API knows no such thing (yet: reads are eventually consistent).
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// maxBody bounds an answer, in bytes.
const maxBody = 16 << 20

func (c *Client) do(ctx context.Context, method, path string, body, out any) error {
	raw, err := c.raw(ctx, method, path, body)
	if err != nil || out == nil || len(raw) == 0 {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("rest %s %s: answer: %w", method, path, err)
	}
	return nil
}

func (c *Client) raw(ctx context.Context, method, path string, body any) ([]byte, error) {
	var r io.Reader
	if body != nil {
		doc, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("rest %s %s: %w", method, path, err)
		}
		r = bytes.NewReader(doc)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, fmt.Errorf("rest %s %s: %w", method, path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, text/xml")
	if c.cfg.Token != nil {
		token, err := c.cfg.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("rest %s %s: %w", method, path, err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.cfg.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("rest %s %s: %w", method, path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read below
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("rest %s %s: %w", method, path, err)
	}
	if len(raw) > maxBody {
		return nil, fmt.Errorf("rest %s %s: answer over %d bytes", method, path, maxBody)
	}
	if resp.StatusCode/100 == 2 {
		return raw, nil
	}
	e := &Error{Call: method + " " + path, Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode)}
	var p struct{ Title, Detail string }
	if json.Unmarshal(raw, &p) == nil && (p.Title != "" || p.Detail != "") {
		e.Title, e.Detail = p.Title, p.Detail
	}
	return nil, e
}

// Key is a key: int64 here, a string on the wire.
type Key int64

// MarshalJSON writes the key as a string.
func (k Key) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(k), 10) + `"`), nil
}

// UnmarshalJSON reads a string, a number or null.
func (k *Key) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if s == "null" || s == "" {
		*k = 0
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return errors.New("key: want an integer of 64 bits")
	}
	*k = Key(n)
	return nil
}

func keyPath(format string, key int64) string { return fmt.Sprintf(format, strconv.FormatInt(key, 10)) }
