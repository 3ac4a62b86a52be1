package enginetest_test

import (
	"os"
	"testing"
	"time"

	"github.com/vitrip/journeyman/engine/enginetest"
)

// A model test: mock the workers, start an instance, move the clock, assert.
func ExampleStart() {
	_ = func(t *testing.T) {
		e := enginetest.Start(t, enginetest.File("testdata/errand.bpmn"))
		e.Mock("shop.buy").ThrowsError("CLOSED", nil).Returns(map[string]any{"price": 3})
		p := e.Create("errand", map[string]any{"what": "milk", "owner": "ada"})
		p.WantActive("wait")
		e.AdvanceClock(8 * time.Hour)
		p.WantPath("buyAgain").WantActive("home").WantVariable("price", 3)
	}
}

// Coverage of all tests of a package: collected in each, written at the end.
func ExampleCoverage() {
	var coverage enginetest.Coverage
	_ = func(m *testing.M) { // TestMain
		code := m.Run()
		if err := coverage.Write("coverage"); err != nil {
			code = 1
		}
		os.Exit(code)
	}
	_ = func(t *testing.T) {
		e := enginetest.Start(t, enginetest.File("testdata/errand.bpmn"))
		e.Collect(&coverage)
	}
}
