package cli

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// The health address is served until the command ends, and a bad one is said.
func TestServeHealth(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serveHealth(ctx, "127.0.0.1:0", http.NotFoundHandler()) }()
	cancel()
	if err := <-done; err != nil && !strings.Contains(err.Error(), "canceled") {
		t.Error(err)
	}
	if err := serveHealth(t.Context(), "nowhere", http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v, want an error that names the address", err)
	}
}
