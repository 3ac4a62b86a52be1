//go:build ruleswitch

package rule

import (
	"os"
	"strconv"
	"strings"
)

// Off reports whether JOURNEYMAN_RULE_OFF, a comma-separated list of numbers, names rule n.
// This build tag exists for tests only.
func Off(n int) bool {
	for _, s := range strings.Split(os.Getenv("JOURNEYMAN_RULE_OFF"), ",") {
		if v, err := strconv.Atoi(s); err == nil && v == n {
			return true
		}
	}
	return false
}
