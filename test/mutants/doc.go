// Package mutants seeds faults into the embedded engine and expects the
// conformance suite to notice each: make mutants.
package mutants
