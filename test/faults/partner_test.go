package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// answer is what the partners' API said.
type answer struct {
	status int
	body   []byte
	wait   string // Retry-After

	OperationID string `json:"operation_id"`
	State       string `json:"state"`
	Reason      struct {
		Code string `json:"code"`
	} `json:"reason"`
	Undone []string `json:"undone"`
	Open   []string `json:"open"`
	Result struct {
		Segments []struct {
			Kind      string `json:"kind"`
			Reference string `json:"reference"`
			Amount    int64  `json:"amount"`
		} `json:"segments"`
	} `json:"result"`
}

func (a answer) final() bool {
	return a.status == http.StatusOK && slices.Contains([]string{"completed", "failed", "expired"}, a.State)
}

func (s *stage) post(typ, key string, body any, header ...string) answer {
	s.Helper()
	text, err := json.Marshal(body)
	s.must(err)
	return s.call(http.MethodPost, "/v1/operations/"+typ, text, append([]string{"Idempotency-Key", key}, header...)...)
}

func (s *stage) status(operation string) answer {
	s.Helper()
	return s.call(http.MethodGet, "/v1/operations/"+operation, nil)
}

func (s *stage) cancel(operation string) answer {
	s.Helper()
	return s.call(http.MethodPost, "/v1/operations/"+operation+"/cancel", nil)
}

// call makes one request. header holds names and values in turn.
func (s *stage) call(method, path string, body []byte, header ...string) answer {
	s.Helper()
	a, err := s.ask(s.ctx, method, path, body, header...)
	s.must(err)
	return a
}

// ask is call for goroutines that are not the test's.
func (s *stage) ask(ctx context.Context, method, path string, body []byte, header ...string) (a answer, err error) {
	base := s.apis[s.asked.Add(1)%uint64(len(s.apis))]
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer token-"+tenant)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := s.http.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	a.status, a.wait = res.StatusCode, res.Header.Get("Retry-After")
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20)); err != nil || len(a.body) == 0 {
		return a, err
	}
	if err := json.Unmarshal(a.body, &a); err != nil {
		return a, fmt.Errorf("%s %s: status %d, body is no JSON: %w", method, path, res.StatusCode, err)
	}
	return a, nil
}
