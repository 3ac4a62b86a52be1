// Package feel compares bpmn/feel with feelin, the evaluator of npm, over a
// corpus of our own. Where the two differ, differences.tsv says what each gives
// and why that is meant; a difference that is not listed fails, and so does a
// listed one that is gone.
//
// The test stands behind the build tag clients: `make clients`.
package feel
