// Package modeltest shows how a model is tested without any service: no
// worker, no database, no engine to start, no Go to write.
//
// leave.bpmn is a model, leave.json its test cases. Without Go:
//
//	journeyman test examples/modeltest/leave.json
//
// In go test, beside what only Go can say: see the test of this package.
package modeltest
