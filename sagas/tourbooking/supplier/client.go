// Package supplier is the HTTP client of the travel suppliers. It says of every
// failed call which of three things is known: the supplier refused, the request
// was never sent, or nobody knows.
package supplier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vitrip/journeyman/worker"
)

// DefaultTimeout bounds one request.
const DefaultTimeout = 10 * time.Second

const maxAnswer = 256 << 10 // bytes of an answer that are read

// Thing is what suppliers answer about a reservation, a return, a ticket request or a payment.
type Thing struct {
	ID        string   `json:"id"`
	Status    string   `json:"status"`
	Reference string   `json:"reference"`
	Amount    int64    `json:"amount"` // minor units
	Currency  string   `json:"currency"`
	Tickets   []string `json:"tickets"`
}

// ErrNotFound says that the supplier has nothing under the reference or id.
var ErrNotFound = errors.New("the supplier has nothing under this reference")

// RefusedError is an answer of 4xx: the supplier did nothing and will do nothing for this request.
type RefusedError struct {
	Status int
	Code   string // the supplier's own code, "" when it gave none
}

// Error gives status and code.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the supplier refused: status %d, code %q", e.Status, e.Code)
}

// Client calls one supplier. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// New makes a client for a base address such as "http://127.0.0.1:8081". timeout bounds one request; 0 = [DefaultTimeout].
//
// Errors: base is not an http or https address, timeout is negative.
func New(base string, timeout time.Duration) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("supplier address %q: want http://host or https://host", base)
	}
	if timeout < 0 {
		return nil, fmt.Errorf("supplier time-out %v: want 0 or more", timeout)
	}
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	return &Client{base: strings.TrimRight(base, "/"), http: &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: min(timeout, 5*time.Second)}).DialContext,
			MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Post sends body under an idempotency key. Classify its error with [Outcome].
func (c *Client) Post(ctx context.Context, path, key string, body any) (Thing, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return Thing{}, fmt.Errorf("post %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return Thing{}, fmt.Errorf("post %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	return c.do(req, path)
}

// Ask looks for what an earlier Post made under a reference.
//
// Errors: [ErrNotFound]; anything else means that it is not known.
func (c *Client) Ask(ctx context.Context, path, reference, booking, segment string) (Thing, error) {
	query := url.Values{"reference": {reference}, "booking": {booking}, "segment": {segment}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return Thing{}, fmt.Errorf("ask %s: %w", path, err)
	}
	return c.do(req, path)
}

func (c *Client) do(req *http.Request, path string) (Thing, error) {
	what := strings.ToLower(req.Method) + " " + path
	res, err := c.http.Do(req)
	if err != nil {
		return Thing{}, fmt.Errorf("%s: %w", what, err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return Thing{}, fmt.Errorf("%s: read answer: %w", what, err)
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
		return Thing{}, fmt.Errorf("%s: %w", what, ErrNotFound)
	case res.StatusCode >= 400 && res.StatusCode < 500 && res.StatusCode != http.StatusRequestTimeout && res.StatusCode != http.StatusTooManyRequests:
		var p struct{ Code string }
		_ = json.Unmarshal(text, &p) // a refusal without a readable body is still a refusal
		return Thing{}, fmt.Errorf("%s: %w", what, &RefusedError{Status: res.StatusCode, Code: p.Code})
	case res.StatusCode/100 != 2:
		return Thing{}, fmt.Errorf("%s: status %d", what, res.StatusCode)
	}
	var t Thing
	if err := json.Unmarshal(text, &t); err != nil {
		return Thing{}, fmt.Errorf("%s: answer cannot be read: %w", what, err)
	}
	return t, nil
}

// NotSent reports whether an error proves that the request never left: the connection was not made.
func NotSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Outcome turns the error of a Post into what a worker's Call returns. codes maps the supplier's codes of
// answer 409 to BPMN error codes; "" is for any other. A request that was never sent is RETRYABLE; a refusal that is
// no business answer is FATAL, since it will not change; all else is unknown.
func Outcome(err error, codes map[string]string) error {
	if err == nil {
		return nil
	}
	var refused *RefusedError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusConflict:
		if code, ok := codes[refused.Code]; ok {
			return worker.BusinessError(code, "the supplier refused with "+refused.Code)
		}
		if code, ok := codes[""]; ok {
			return worker.BusinessError(code, "the supplier refused with "+refused.Code)
		}
		return worker.Fatal(err)
	case errors.As(err, &refused), errors.Is(err, ErrNotFound):
		return worker.Fatal(err)
	case NotSent(err):
		return worker.Retryable(err)
	default:
		return worker.Unknown(err)
	}
}
