//go:build !ruleswitch

// Package rule lets a test build switch one rule of the effect path off, to
// prove that the rule's test can fail. In ordinary builds Off is a constant
// false that the compiler removes.
package rule

// Off reports whether rule n is switched off: always false in this build.
func Off(n int) bool { return false }
