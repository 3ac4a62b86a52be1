// Package conformance is one black-box suite over the wire: gRPC of Zeebe 8.5
// and REST v2 of 8.8. It runs against the embedded engine, one engine per test.
//
// With ZEEBE_TEST_ADDRESS and ZEEBE_TEST_REST_ADDRESS set it runs against that
// cluster instead; cases that need a movable clock are left out there, each
// with the reason in its output.
package conformance

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
