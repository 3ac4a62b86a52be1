package bucket_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	_ "gocloud.dev/blob/s3blob"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
)

// addresses gives a URL of each form. The S3 server speaks the protocol on loopback.
func addresses(t *testing.T) map[string]string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("events"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	return map[string]string{
		"file": "file://" + t.TempDir() + "/made/by/open", "mem": "mem://",
		"s3": "s3://events?region=eu-central-1&use_path_style=true&disable_https=true&endpoint=" + server.URL + "&prefix=some/where/",
	}
}

// Files, memory and S3 keep what a store promises.
func TestBucket_E9_EveryFormOfURL(t *testing.T) {
	for name, url := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			b, err := bucket.Open(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close() //nolint:errcheck // the end
			if _, err := b.Read(ctx, "v1/none"); !errors.Is(err, archive.ErrMissing) {
				t.Errorf("read of nothing: %v, want ErrMissing", err)
			}
			big := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MB
			for name, content := range map[string][]byte{"v1/2026-11-30/part-00002": []byte("two"), "v1/2026-11-30/part-00001": []byte("one"), "v2/x": big} {
				if err := b.Create(ctx, name, content); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Create(ctx, "v1/2026-11-30/part-00001", []byte("other")); !errors.Is(err, archive.ErrExists) {
				t.Errorf("create over an object: %v, want ErrExists", err)
			}
			if got, err := b.Read(ctx, "v1/2026-11-30/part-00001"); err != nil || string(got) != "one" {
				t.Errorf("read %q, %v; want what was written first", got, err)
			}
			if got, err := b.Read(ctx, "v2/x"); err != nil || !bytes.Equal(got, big) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			names, err := b.List(ctx, "v1/")
			if err != nil || !slices.Equal(names, []string{"v1/2026-11-30/part-00001", "v1/2026-11-30/part-00002"}) {
				t.Errorf("list %v, %v", names, err)
			}
		})
	}
}

// Who lists a folder while others write to it sees whole objects only, and nothing of a writer that was killed.
func TestBucket_E9_ListsWholeObjects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := bucket.Open(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close() //nolint:errcheck // the end
	if err := os.WriteFile(filepath.Join(dir, "part-0.187d1b0f6c2a9e00.tmp"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	content := bytes.Repeat([]byte("x"), 1000)
	for range 4 {
		writers.Go(func() {
			for n := range 200 { // the same objects: three of four find them there
				if err := b.Create(t.Context(), fmt.Sprintf("part-%d", n), content); err != nil && !errors.Is(err, archive.ErrExists) {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for busy := true; busy; {
		select {
		case <-done:
			busy = false
		default:
		}
		names, err := b.List(t.Context(), "part-")
		if err != nil {
			t.Fatal(err)
		}
		if !busy && len(names) != 200 {
			t.Errorf("%d objects, want 200", len(names))
		}
		for _, name := range names {
			if strings.Contains(name, ".") {
				t.Fatalf("listed %s, which is no object", name)
			}
		}
	}
}

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "/var/archive", "ftp://x", "::"} {
		if _, err := bucket.Open(t.Context(), url); err == nil || !strings.Contains(err.Error(), "bucket") {
			t.Errorf("Open(%q): %v, want it refused", url, err)
		}
	}
}

// Deleting twice, or what never was, is deleting.
func TestBucket_delete(t *testing.T) {
	for form, address := range addresses(t) {
		b, err := bucket.Open(t.Context(), address)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		err = errors.Join(b.Create(t.Context(), "exports/a/1", []byte("x")), b.Create(t.Context(), "exports/a/2", []byte("x")),
			b.Delete(t.Context(), "exports/a/1"), b.Delete(t.Context(), "exports/a/1"), b.Delete(t.Context(), "exports/never"))
		names, err2 := b.List(t.Context(), "exports/")
		if err := errors.Join(err, err2, b.Close()); err != nil || !slices.Equal(names, []string{"exports/a/2"}) {
			t.Errorf("%s: %v, left %v, want the second one", form, err, names)
		}
	}
}
