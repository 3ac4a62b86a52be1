package lint

import (
	"strings"
	"testing"
)

// TestObjectStorageStaysInItsLeaf keeps gocloud.dev in events/archive/bucket and
// the AWS SDK in the command: who imports our libraries builds neither.
func TestObjectStorageStaysInItsLeaf(t *testing.T) {
	t.Parallel()
	seen := false
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		seen = seen || name == "events/archive/bucket"
		if !library(name) {
			continue
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "github.com/aws/") || strings.HasPrefix(dep, "gocloud.dev/") && name != "events/archive/bucket" {
				t.Errorf("%s depends on %s", name, dep)
				break
			}
		}
	}
	if !seen {
		t.Error("events/archive/bucket was not looked at")
	}
}
