//go:build promtool

// Package alerts_test runs the rules through Prometheus's own tool, which must be on the PATH or named by PROMTOOL.
package alerts_test

import (
	"os"
	"os/exec"
	"testing"
)

func TestRules_promtool(t *testing.T) {
	t.Parallel()
	tool := os.Getenv("PROMTOOL")
	if tool == "" {
		tool = "promtool"
	}
	for _, args := range [][]string{{"check", "rules", "operations.yaml", "delivery.yaml", "consumers.yaml"}, {"test", "rules", "rules_test.yaml", "consumers_test.yaml"}} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil { //nolint:gosec // the tester names the tool
			t.Errorf("%s %v: %v\n%s", tool, args, err, out)
		}
	}
}
