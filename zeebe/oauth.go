package zeebe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// OAuthConfig is a client-credentials grant (RFC 6749 4.4), as Camunda's identity services want it.
type OAuthConfig struct {
	URL          string // token endpoint, https or a loopback address
	ClientID     string
	ClientSecret string
	Audience     string       // "" = not sent
	Scope        string       // "" = not sent
	HTTP         *http.Client // nil = one with a 10 s time-out
}

// TokenSource gets and keeps one access token, in memory only. Safe for concurrent
// use: callers that need a new token at the same time wait for one request.
type TokenSource struct {
	cfg  OAuthConfig
	mu   sync.Mutex
	cur  string
	till time.Time
	wait chan struct{} // closed when the refresh under way ends; nil = none
	err  error         // of the last refresh
}

// OAuth makes a token source. It does not ask for a token yet. Give its Token and Rejected to [Config].
func OAuth(cfg OAuthConfig) (*TokenSource, error) {
	var errs []error
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Host == "":
		errs = append(errs, fmt.Errorf("oauth url %q: want a full URL", cfg.URL))
	case u.Scheme != "https" && u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" && u.Hostname() != "::1":
		errs = append(errs, fmt.Errorf("oauth url %q: want https, the secret would be sent in clear", cfg.URL))
	}
	if cfg.ClientID == "" {
		errs = append(errs, errors.New("oauth client id: empty"))
	}
	if cfg.ClientSecret == "" {
		errs = append(errs, errors.New("oauth client secret: empty"))
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: 10 * time.Second}
	}
	return &TokenSource{cfg: cfg}, errors.Join(errs...)
}

// Token gives a token that is good for at least a few seconds more. It waits for the endpoint when it must.
func (s *TokenSource) Token(ctx context.Context) (string, error) {
	for first := true; ; first = false {
		s.mu.Lock()
		if s.cur != "" && time.Until(s.till) > 0 {
			defer s.mu.Unlock()
			return s.cur, nil
		}
		if s.wait == nil {
			if !first && s.err != nil { // the refresh we waited for failed: its error is ours
				defer s.mu.Unlock()
				return "", s.err
			}
			done := make(chan struct{})
			s.wait = done
			// The request belongs to all waiters: it must not end with the context of the first.
			go s.refresh(context.WithoutCancel(ctx), done)
		}
		wait := s.wait
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return "", fmt.Errorf("oauth token: %w", ctx.Err())
		}
	}
}

// Rejected drops the token if it is still the current one, so that the next Token call asks anew.
func (s *TokenSource) Rejected(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == token {
		s.cur = ""
	}
}

func (s *TokenSource) refresh(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	token, life, err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait, s.err = nil, err
	if err == nil {
		s.cur, s.till = token, time.Now().Add(life-min(30*time.Second, life/5))
	}
	close(done)
}

func (s *TokenSource) ask(ctx context.Context) (string, time.Duration, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {s.cfg.ClientID}, "client_secret": {s.cfg.ClientSecret}}
	if s.cfg.Audience != "" {
		form.Set("audience", s.cfg.Audience)
	}
	if s.cfg.Scope != "" {
		form.Set("scope", s.cfg.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, fmt.Errorf("oauth token: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return "", 0, fmt.Errorf("oauth token: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to the limit below
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", 0, fmt.Errorf("oauth token: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", 0, fmt.Errorf("oauth token: %s answered %s", s.cfg.URL, resp.Status)
	}
	var t struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &t); err != nil || t.AccessToken == "" {
		return "", 0, fmt.Errorf("oauth token: %s answered without access_token", s.cfg.URL)
	}
	if t.ExpiresIn <= 0 {
		t.ExpiresIn = 60
	}
	return t.AccessToken, time.Duration(t.ExpiresIn) * time.Second, nil
}

func (c *Conn) authorize(ctx context.Context) (context.Context, string, error) {
	token, err := c.cfg.Token(ctx)
	if err != nil {
		return ctx, "", status.Error(codes.Unauthenticated, err.Error())
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), token, nil
}

// authUnary adds the token and tries once more with a new one when the gateway refuses it.
func (c *Conn) authUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	for again := false; ; again = true {
		actx, token, err := c.authorize(ctx)
		if err != nil {
			return err
		}
		err = invoke(actx, method, req, reply, cc, opts...)
		if status.Code(err) != codes.Unauthenticated {
			return err
		}
		c.reject(token)
		if again || c.cfg.Rejected == nil {
			return err
		}
	}
}

func (c *Conn) authStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, token, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		if status.Code(err) == codes.Unauthenticated {
			c.reject(token)
		}
		return nil, err
	}
	return &authorizedStream{ClientStream: s, rejected: func() { c.reject(token) }}, nil
}

// authorizedStream notices that the gateway refused the token, which a stream shows only when it is read.
type authorizedStream struct {
	grpc.ClientStream
	rejected func()
}

// RecvMsg reads as the stream does.
func (s *authorizedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if status.Code(err) == codes.Unauthenticated {
		s.rejected()
	}
	return err
}

func (c *Conn) reject(token string) {
	c.cfg.Log.Info().Str("cluster", c.cfg.Cluster).Msg("the gateway refused the access token")
	if c.cfg.Rejected != nil {
		c.cfg.Rejected(token)
	}
}
