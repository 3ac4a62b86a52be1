package faults

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

// answer is what the partners' API said.
type answer struct {
	status int
	body   []byte

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
	req, err := http.NewRequestWithContext(s.ctx, method, s.api+path, bytes.NewReader(body))
	s.must(err)
	req.Header.Set("Authorization", "Bearer token-"+tenant)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := s.http.Do(req)
	s.must(err)
	defer res.Body.Close() //nolint:errcheck // read only
	a := answer{status: res.StatusCode}
	a.body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	s.must(err)
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &a); err != nil {
			s.Errorf("%s %s: status %d, body is no JSON: %v", method, path, res.StatusCode, err)
		}
	}
	return a
}
