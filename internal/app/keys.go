package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/sagas/jwtauth"
)

// JWT makes the authenticator of access tokens. With keysFile the issuer's keys (a JWKS document) are read from that file
// instead of being fetched, again every few minutes, so that keys can be exchanged while the process runs.
func JWT(cfg jwtauth.Config, keysFile string) (*jwtauth.Verifier, error) {
	if keysFile == "" {
		return jwtauth.New(cfg)
	}
	if cfg.KeysURL != "" {
		return nil, fmt.Errorf("keys: both a file (%s) and a URL (%s) are given, want one", keysFile, cfg.KeysURL)
	}
	if _, err := os.ReadFile(keysFile); err != nil { //nolint:gosec // the operator names the file
		return nil, fmt.Errorf("keys: %w", err)
	}
	cfg.KeysURL = strings.TrimSuffix(cfg.Issuer, "/") + "/keys-from-file" // never dialled
	cfg.Client = &http.Client{Transport: fileKeys(keysFile)}
	return jwtauth.New(cfg)
}

// sealsRecords says whether operation records rest encrypted, as the events do that move them. There are keys then:
// [Messages] without them are refused.
func (w writing) sealsRecords() bool {
	return w.catalog.Encryption(events.ClassSaga) != events.EncryptNone
}

// fileKeys answers every request with the content of a file.
type fileKeys string

// RoundTrip reads the file.
func (f fileKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	content, err := os.ReadFile(string(f))
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}, nil
}
