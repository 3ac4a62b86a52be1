package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// partner is a system that books over the HTTP API.
type partner struct {
	base   string // http://host:port
	token  string
	client *http.Client
}

// answer is what the API said.
type answer struct {
	status int
	body   []byte

	OperationID string `json:"operation_id"`
	State       string `json:"state"`
	Reason      struct {
		Code string `json:"code"`
	} `json:"reason"`
	Progress struct {
		CurrentStep string `json:"current_step"`
	} `json:"progress"`
	Detail string `json:"detail"` // of a problem document
}

// ended reports whether the operation has its final answer.
func (a answer) ended() bool { return a.status == http.StatusOK && a.State != "in_progress" }

func (p partner) start(ctx context.Context, typ, key string, body []byte) (answer, error) {
	return p.do(ctx, http.MethodPost, "/v1/operations/"+typ, key, body)
}

func (p partner) status(ctx context.Context, operation string) (answer, error) {
	return p.do(ctx, http.MethodGet, "/v1/operations/"+operation, "", nil)
}

func (p partner) cancel(ctx context.Context, operation string) (answer, error) {
	return p.do(ctx, http.MethodPost, "/v1/operations/"+operation+"/cancel", "", nil)
}

func (p partner) do(ctx context.Context, method, path, key string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := p.client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("partner: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return answer{}, fmt.Errorf("partner: %s %s: %w", method, path, err)
	}
	a := answer{status: res.StatusCode, body: text}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &a); err != nil {
			return a, fmt.Errorf("partner: %s %s: status %d: %w", method, path, res.StatusCode, err)
		}
	}
	return a, nil
}

// errOpen is returned by await when the operation had no end in time.
var errOpen = errors.New("no final answer in time")

// pollEvery is the slow poll behind the hint: what a partner does that hears no event.
const pollEvery = 5 * time.Second

// await waits for the final answer. It asks when hint says that something
// happened, at most once a second, and otherwise every few seconds.
func (p partner) await(ctx context.Context, operation string, within time.Duration, hint func() (bool, <-chan struct{})) (answer, error) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var last time.Time
	var a answer
	for {
		over, change := hint()
		if over && time.Since(last) > time.Second {
			var err error
			if a, err = p.status(ctx, operation); err != nil || a.ended() {
				return a, err
			}
			last = time.Now()
		}
		var again <-chan time.Time
		if over {
			again = time.After(1100*time.Millisecond - time.Since(last))
			change = nil
		}
		select {
		case <-change:
		case <-again:
		case <-poll.C:
			var err error
			if a, err = p.status(ctx, operation); err != nil || a.ended() {
				return a, err
			}
			last = time.Now()
		case <-deadline.C:
			return a, errOpen
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}
