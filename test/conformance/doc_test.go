// Package conformance is one black-box suite over the wire: gRPC of Zeebe 8.5
// and REST v2 of 8.8. Every named case pins a line of a public document, see
// CASES.md and [docs].
//
// By itself it runs against the embedded engine, one engine per case:
//
//	go test ./test/conformance
//
// Against any cluster, a real Camunda 8 or one running engine:
//
//	ZEEBE_TEST_ADDRESS=127.0.0.1:26500 ZEEBE_TEST_REST_ADDRESS=http://127.0.0.1:8080 \
//	    go test -count=1 -shuffle=on ./test/conformance
//
// ZEEBE_TEST_TLS=true connects with TLS and the system's certificates;
// ZEEBE_TEST_AUTHORIZATION is sent as the header "authorization" of every call,
// for example "Bearer …" or "Basic …". The cluster need not be empty, several
// suites may run at once and again: each case has names of its own for
// processes, job types, messages and signals (namespace_test.go adds a random
// suffix on the way out and takes it off on the way back). Cases that move the
// clock or test what only the embedded engine has are left out there, each with
// its reason; CASES.md lists them. `make mutants` proves it with three suites on one engine.
//
// Searches of a real cluster are late, and every case waits for what it looks for;
// ZEEBE_TEST_LATE=100ms makes those of the embedded engine late too, to prove it.
//
// After a case was added or changed: go test ./test/conformance -update
package conformance
