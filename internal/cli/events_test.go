package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const eventsCatalog = `domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], schema: {type: object, properties: {id: {type: string}}}}
`

// checkout makes a git checkout whose folder svc has a committed catalog, and gives the folder.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "svc")
	writeCatalog(t, dir, eventsCatalog)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func writeCatalog(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "deep", "catalog.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEventsCheck(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	if code, out, errs := run(nil, "events", "check", "--against", "HEAD", "--dir", dir); code != ExitDone || out != "" {
		t.Errorf("nothing changed: exit code %d\n%s%s", code, out, errs)
	}
	writeCatalog(t, dir, strings.Replace(eventsCatalog, "{type: string}", "{type: integer}", 1))
	if code, out, _ := run(nil, "events", "check", "--against", "HEAD", "--dir", dir); code != ExitWrong || !strings.Contains(out, "test.thing.created v1: schema of data.id type") {
		t.Errorf("a broken schema: exit code %d\n%s", code, out)
	}
	code, out, _ := run(nil, "events", "check", "--against", "HEAD", "--dir", dir, "--json")
	var report struct {
		Types  int
		Breaks []struct{ Type, Change, Field string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != ExitWrong || report.Types != 1 || len(report.Breaks) != 1 || report.Breaks[0].Field != "data.id type" {
		t.Errorf("json: exit code %d, %v\n%s", code, err, out)
	}
	for _, revision := range []string{"no-such-revision", "--output=x"} {
		if code, _, errs := run(nil, "events", "check", "--against="+revision, "--dir", dir); code != ExitMissing || !strings.Contains(errs, revision) {
			t.Errorf("revision %s: exit code %d\n%s", revision, code, errs)
		}
	}
	writeCatalog(t, dir, strings.Replace(eventsCatalog, "{type: string}", "{$ref: \"https://example.org/x\"}", 1))
	if code, _, errs := run(nil, "events", "check", "--against", "HEAD", "--dir", dir); code != ExitWrong || !strings.Contains(errs, "https://example.org/x") {
		t.Errorf("a remote reference: exit code %d\n%s", code, errs)
	}
	if code, _, _ := run(nil, "events", "check"); code != ExitUsage {
		t.Errorf("without --against: exit code %d", code)
	}
}

// Every format, over git and the command itself, the field named (spec E5).
func TestEventsCheck_Formats_E5(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	const was = `domains: [test]
messages:
  - {type: test.trip.booked, class: domain, owner: test, producers: [tester], format: avro, schema: {type: record, name: A, fields: [{name: id, type: string}]}}
  - {type: test.trip.paid, class: domain, owner: test, producers: [tester], format: protobuf, schema: 'syntax = "proto3"; message A { string id = 1; }'}
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], schema: {type: object, properties: {id: {type: string}}}}
`
	writeCatalog(t, dir, was)
	commit := exec.CommandContext(t.Context(), "git", "-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-a", "-m", "formats")
	commit.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for change, want := range map[[2]string]string{
		{"", ""}: "",
		{"{name: id, type: string}", "{name: id, type: string}, {name: note, type: string, default: ''}"}:                "",
		{"{name: id, type: string}", "{name: id, type: int}"}:                                                            "test.trip.booked v1: schema of data.id: was string",
		{"string id = 1;", "string id = 1; string note = 2;"}:                                                            "",
		{"string id = 1;", "bytes id = 1;"}:                                                                              "test.trip.paid v1: schema of data.id: was string, is bytes",
		{"{type: string}}", "{type: number}}"}:                                                                           "test.thing.created v1: schema of data.id type",
		{"producers: [tester], format: protobuf", "producers: [tester], topic: t, format: protobuf"}:                     "test.trip.paid v1: topic: was test.trip.paid.v1, is t",
		{"producers: [tester], format: protobuf", "producers: [tester], partitions: 8, format: protobuf"}:                "test.trip.paid v1: partitions: was 4, is 8",
		{"producers: [tester], format: protobuf", "producers: [tester], dlq: d, format: protobuf"}:                       "test.trip.paid v1: dlq: was platform.dlq.v1, is d",
		{"producers: [tester], format: protobuf", "producers: [tester], retry: [1s], format: protobuf"}:                  "test.trip.paid v1: retry: was 1s, 5s",
		{"producers: [tester], format: protobuf", "producers: [tester], idempotency_key: operationId, format: protobuf"}: "test.trip.paid v1: idempotency_key: was messageId, is operationId",
		{"format: avro, schema: {type: record, name: A, fields: [{name: id, type: string}]}", "schema: {type: object}"}:  "test.trip.booked v1: format: was avro, is json",
	} {
		writeCatalog(t, dir, strings.Replace(was, change[0], change[1], 1))
		code, out, errs := run(nil, "events", "check", "--against", "HEAD", "--dir", dir)
		if want == "" && (code != ExitDone || out != "") || want != "" && (code != ExitWrong || !strings.Contains(out, want)) {
			t.Errorf("%q: exit code %d, want it to say %q\n%s%s", change, code, want, out, errs)
		}
	}
	writeCatalog(t, dir, strings.Replace(was, "string id = 1;", "Missing id = 1;", 1))
	if code, _, errs := run(nil, "events", "check", "--against", "HEAD", "--dir", dir); code != ExitWrong || !strings.Contains(errs, "test.trip.paid v1: schema") {
		t.Errorf("a schema that does not compile: exit code %d\n%s", code, errs)
	}
}

func TestEventsDocs(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "docs")
	if code, _, errs := run(nil, "events", "docs", "--dir", filepath.Join("..", ".."), "--out", out); code != ExitDone {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	for name, want := range map[string]string{"asyncapi.yaml": "address: tour.booking.confirmed.v1", "index.html": `id="tour.booking.confirmed.v1"`} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s: %v", name, want, err)
		}
	}
	if code, _, errs := run(nil, "events", "docs", "--dir", t.TempDir(), "--out", out); code != ExitWrong || !strings.Contains(errs, "no catalog.yaml") {
		t.Errorf("no catalog: exit code %d\n%s", code, errs)
	}
}
