package zeebe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/zeebe"
)

// TestOAuth_writesNothing: with a read-only home and nowhere else to write, a token is fetched, replaced when its time is over and again
// when the gateway refuses it. The folder stays empty, which is what shows it to a user whom its mode does not bind.
func TestOAuth_writesNothing(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o500); err != nil { //nolint:gosec // a folder needs its x bit
		t.Fatal(err)
	}
	t.Chdir(home)
	for _, name := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, home)
	}

	var issued, refused atomic.Int64
	life := func(n int64) int64 { // of the n-th token, in seconds; a fifth of it is kept back
		if n == 1 {
			return 1
		}
		return 3600
	}
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := issued.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprint("T", n), "expires_in": life(n)})
	}))
	defer idp.Close()
	src, err := zeebe.OAuth(zeebe.OAuthConfig{URL: idp.URL, ClientID: "id", ClientSecret: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	token := func() string {
		t.Helper()
		tok, err := src.Token(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	if tok := token(); tok != "T1" {
		t.Errorf("first token %q, want T1", tok)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for token() == "T1" {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("a token that is over is still given")
		}
	}
	if tok := token(); tok != "T2" || issued.Load() != 2 {
		t.Errorf("token %q after %d requests when the first was over, want T2 after 2", tok, issued.Load())
	}

	c := serve(t, &gateway{complete: func(ctx context.Context, _ *pb.CompleteJobRequest) error {
		md, _ := metadata.FromIncomingContext(ctx)
		if a := md.Get("authorization"); len(a) != 1 || a[0] != "Bearer T3" {
			refused.Add(1)
			return status.Error(codes.Unauthenticated, "revoked")
		}
		return nil
	}}, zeebe.Config{Token: src.Token, Rejected: src.Rejected, TokenInClear: true})
	for range 2 {
		if err := c.Complete(ctx, 1, ""); err != nil {
			t.Error(err)
		}
	}
	if refused.Load() != 1 || issued.Load() != 3 {
		t.Errorf("%d refused calls and %d tokens, want 1 and 3", refused.Load(), issued.Load())
	}

	left, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("%s was written", e.Name())
	}
}
