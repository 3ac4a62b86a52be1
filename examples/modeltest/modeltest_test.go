package modeltest

import (
	"testing"
	"time"

	"github.com/vitrip/journeyman/engine/enginetest"
)

// The test cases of the file, in go test. Every element must have run in one of them.
func TestLeave(t *testing.T) {
	var coverage enginetest.Coverage
	t.Run("cases", func(t *testing.T) {
		enginetest.Scenarios{Models: []enginetest.Model{enginetest.File("leave.bpmn")}, Coverage: &coverage}.RunFile(t, "leave.json")
	})
	for _, m := range coverage.Models() {
		if len(m.Missing) > 0 {
			t.Errorf("%s: %v ran in no test case", m.File, m.Missing)
		}
	}
}

// The same model in Go: an answer that depends on the job.
func TestLeave_inGo(t *testing.T) {
	e := enginetest.Start(t, enginetest.File("leave.bpmn"))
	e.Mock("leave.reserve").WithFunc(func(j enginetest.Job) enginetest.Answer {
		if enginetest.Get[int](j, "days") > 20 {
			return enginetest.Throw("NO_DAYS_LEFT", nil)
		}
		return enginetest.Complete(map[string]any{"left": 20 - enginetest.Get[int](j, "days")})
	})
	e.Mock("leave.release")
	ask := func(key string, days int) *enginetest.Instance {
		return e.Create("leave", map[string]any{"businessKey": key, "correlationId": "c", "traceparent": "t", "days": days})
	}
	ask("L-1", 30).WantCompleted().WantPath("noDays", "refused")
	p := ask("L-2", 5).WantActive("approve").WantVariable("left", 15)
	e.AdvanceClock(72*time.Hour + time.Second)
	p.WantCompleted().WantCompensated("release").WantNotReached("tell")
}
