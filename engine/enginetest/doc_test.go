package enginetest

import (
	"os"
	"strings"
	"testing"
)

// TestPage: docs/testing-a-model.md names every instruction.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/testing-a-model.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range instructions() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page lacks %s", name)
		}
	}
}
