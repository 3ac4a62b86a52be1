package models_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/bpmn/models"
)

func parse(t *testing.T, name string) (*bpmn.Definitions, []*bpmn.Element) {
	t.Helper()
	text, err := models.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	defs, err := bpmn.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := defs.Check(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var all []*bpmn.Element
	var walk func(s *bpmn.Scope)
	walk = func(s *bpmn.Scope) {
		for _, e := range s.Elements {
			all = append(all, e)
			if e.Scope != nil {
				walk(e.Scope)
			}
		}
	}
	for _, p := range defs.Processes {
		walk(&p.Scope)
	}
	return defs, all
}

func input(e *bpmn.Element, target string) string {
	for _, m := range e.Inputs {
		if m.Target == target {
			return m.Source
		}
	}
	return ""
}

func TestModels_passOurLint(t *testing.T) {
	t.Parallel()
	for _, name := range models.Names() {
		defs, _ := parse(t, name)
		for _, f := range bpmn.Lint(defs) {
			t.Errorf("%s: %+v", name, f)
		}
		if want := strings.TrimSuffix(name, ".bpmn"); defs.Processes[0].ID != want {
			t.Errorf("%s: process id %q, want %q", name, defs.Processes[0].ID, want)
		}
	}
}

func TestModels_everyTaskPassesTheCorrelationFields(t *testing.T) {
	t.Parallel()
	for _, name := range models.Names() {
		_, all := parse(t, name)
		for _, e := range all {
			if e.Kind != bpmn.KindServiceTask {
				continue
			}
			for _, field := range []string{"businessKey", "correlationId", "traceparent", "tenant", "sagaId"} {
				if got := input(e, field); got != "="+field {
					t.Errorf("%s: %s: input %s is %q, want %q", name, e.ID, field, got, "="+field)
				}
			}
			want := `=sagaId + ":` + e.ID + `"`
			switch {
			case e.Undoes():
				forward := input(e, "forwardOperationId")
				want = strings.TrimSuffix(forward, `"`) + `:undo"`
				if !strings.HasSuffix(forward, `"`) {
					want = forward + ` + ":undo"` // the handler of a loop is given the operation
				}
			case name == models.TourBooking && e.Parent != nil && e.Parent.Loop != nil:
				want = `=sagaId + ":` + e.ID + `:" + segment.id`
			case e.Parent != nil && e.Parent.Loop != nil:
				want = `=sagaId + ":` + e.ID + `:" + string(loopCounter)`
			}
			if got := input(e, "operationId"); got != want {
				t.Errorf("%s: %s: operation id is %q, want %q", name, e.ID, got, want)
			}
			if e.Doc == "" {
				t.Errorf("%s: %s: no documentation", name, e.ID)
			}
		}
	}
}

func TestModels_compensationHandlersUndoTheirOwnActivity(t *testing.T) {
	t.Parallel()
	for _, name := range models.Names() {
		_, all := parse(t, name)
		for _, e := range all {
			if e.CompensationHandler == nil {
				continue
			}
			if got, want := input(e.CompensationHandler, "forwardOperationId"), input(e, "operationId"); got != want {
				t.Errorf("%s: %s: undoes %q, want %q", name, e.CompensationHandler.ID, got, want)
			}
		}
	}
}

// The closing job is given one id for each task whose result the process can hold (path rule 14).
func TestModels_closeHoldsEveryStep(t *testing.T) {
	t.Parallel()
	for _, name := range models.Names() {
		_, all := parse(t, name)
		var held string
		for _, e := range all {
			if e.Task != nil && e.Task.Type == models.JobSagaClose {
				held = input(e, "held")
			}
		}
		for _, e := range all {
			if e.Kind != bpmn.KindServiceTask || e.Machinery() || e.Undoes() || (e.Parent != nil && e.Parent.Loop != nil) {
				continue
			}
			variable := e.ID + "Held"
			if !strings.Contains(held, variable) {
				t.Errorf("%s: close is not given %s", name, variable)
			}
			if !slices.Contains(e.Outputs, bpmn.Mapping{Source: "=operationId", Target: variable}) {
				t.Errorf("%s: %s: no output of its operation id to %s", name, e.ID, variable)
			}
		}
	}
}

func TestModels_undoChainsAreInOrder(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		models.TourBooking: {models.StepPaymentAuthorize, "eachSegment"},
		models.Refund:      nil,
		models.Ticketing:   {models.StepTicketRequest},
		models.Amendment:   {"differenceAuthorize", "segmentReserve", "amendmentBegin"},
		models.Reservation: {"paymentAuthorize", "segmentReserve"},
		models.DataExport:  nil,
	}
	reasons := map[string]string{"error": "failed", "timer": "expired", "message": "cancelled"}
	for _, name := range models.Names() {
		_, all := parse(t, name)
		paths := 0
		for _, sub := range all {
			if !sub.TriggeredByEvent {
				continue
			}
			paths++
			start := sub.Scope.Elements[0]
			giveUp := start.Outgoing[0].Target
			if got := giveUp.Headers; !slices.Contains(got, bpmn.Header{Key: "reason", Value: reasons[string(start.Event.Kind)]}) {
				t.Errorf("%s: %s: headers %v, want reason %s", name, giveUp.ID, got, reasons[string(start.Event.Kind)])
			}
			var chain []string
			at := giveUp.Outgoing[0].Target // the gateway; its first flow leads to the undo
			for at = at.Outgoing[0].Target; at.Kind == bpmn.KindThrowEvent; at = at.Outgoing[0].Target {
				chain = append(chain, at.Event.ActivityRef)
			}
			if d := cmp.Diff(want[name], chain); d != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, sub.ID, d)
			}
			if at.Task == nil || at.Task.Type != models.JobSagaUndoRest {
				t.Errorf("%s: %s: the undo does not end in %s", name, sub.ID, models.JobSagaUndoRest)
			}
		}
		if paths != len(reasons) {
			t.Errorf("%s: %d ways to give up, want %d", name, paths, len(reasons))
		}
	}
}

// Names written by hand must be those in the files, and the other way round.
func TestNames_areThoseOfTheModels(t *testing.T) {
	t.Parallel()
	jobs, codes, messages, pivots := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, name := range models.Names() {
		defs, all := parse(t, name)
		for _, e := range all {
			if e.Task != nil {
				jobs[e.Task.Type] = true
			}
			if v, _ := e.Property(bpmn.PropertyPivot); v == "true" {
				pivots[name] = e.ID
			}
		}
		for _, e := range defs.Errors {
			codes[e.Code] = true
		}
		for _, m := range defs.Messages {
			messages[m.Name] = true
		}
	}
	wantJobs := []string{
		models.JobSagaBegin, models.JobSagaGiveUp, models.JobSagaUndoRest, models.JobSagaClose,
		models.JobFlightReserve, models.JobFlightCancel, models.JobFlightFollowUp, models.JobHotelReserve, models.JobHotelCancel,
		models.JobHotelFollowUp, models.JobTransferReserve, models.JobTransferCancel, models.JobTransferFollowUp,
		models.JobPaymentAuthorize, models.JobPaymentVoid, models.JobPaymentFollowUp, models.JobBookingConfirm, models.JobPaymentCapture,
		models.JobCaptureFollowUp, models.JobSegmentRefund, models.JobSegmentFollowUp, models.JobRefundApprove, models.JobRefundPay,
		models.JobRefundFollowUp, models.JobTicketRequest, models.JobTicketWithdraw, models.JobTicketFollowUp, models.JobTicketRecord,
		models.JobAmendmentBegin, models.JobAmendmentBack, models.JobAmendmentReserve, models.JobAmendmentRelease, models.JobAmendmentAuthorize,
		models.JobAmendmentVoid, models.JobAmendmentConfirm, models.JobAmendmentSettle, models.JobAmendmentReleaseOld,
		models.JobAmendmentFollowUp, models.JobAmendmentPaymentFollowUp, models.JobAmendmentSettleFollowUp,
		models.JobReservationReserve, models.JobReservationRelease, models.JobReservationFollowUp, models.JobReservationAuthorize, models.JobReservationVoid,
		models.JobReservationPaymentFollowUp, models.JobReservationConfirm, models.JobReservationCapture, models.JobReservationCaptureFollowUp,
		models.JobExportFreeze, models.JobExportWrite, models.JobExportPublish,
	}
	wantCodes := []string{
		models.CodeSagaNotMine, models.CodeOutcomeUnknown, models.CodeSegmentsIncomplete, models.CodeCaptureRefused,
		models.CodeRefundIncomplete, models.CodeRefundRefused,
	}
	wantMessages := []string{
		models.MessageStartTourBooking, models.MessageStartRefund, models.MessageStartTicketing, models.MessageStartAmendment, models.MessageStartReservation, models.MessageStartDataExport,
		models.MessageCancel, models.MessageTicketIssued,
	}
	for what, both := range map[string][2][]string{
		"job types": {wantJobs, slices.Collect(maps.Keys(jobs))}, "error codes": {wantCodes, slices.Collect(maps.Keys(codes))},
		"messages": {wantMessages, slices.Collect(maps.Keys(messages))},
	} {
		slices.Sort(both[0])
		slices.Sort(both[1])
		if d := cmp.Diff(both[0], both[1]); d != "" {
			t.Errorf("%s (-constants +models):\n%s", what, d)
		}
	}
	wantPivots := map[string]string{
		models.TourBooking: models.StepBookingConfirm, models.Refund: models.StepRefundApprove, models.Ticketing: models.StepTicketRecord,
		models.Amendment: models.StepAmendmentConfirm, models.Reservation: models.StepReservationConfirm, models.DataExport: models.StepExportPublish,
	}
	if d := cmp.Diff(wantPivots, pivots); d != "" {
		t.Errorf("pivots (-want +got):\n%s", d)
	}
}

func TestRead_unknownName(t *testing.T) {
	t.Parallel()
	if _, err := models.Read("nothing.bpmn"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
}

// What the linter wants inside a multi-instance and inside a compensation handler that is a subprocess.
func TestModels_lintInsideLoops(t *testing.T) {
	t.Parallel()
	text, err := models.Read(models.TourBooking)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, with, rule, element string }{
		{`=sagaId + &#34;:flightReserve:&#34; + segment.id" target="operationId"`, `=sagaId + &#34;:flightReserve&#34;" target="operationId"`, "operation-id", "flightReserve"},
		{`=sagaId + &#34;:flightReserve:&#34; + segment.id" target="operationId"`, `=sagaId + &#34;:hotelReserve:&#34; + segment.id" target="operationId"`, "operation-id", "hotelReserve"},
		{`<zeebe:input source="=undoing.operationId" target="forwardOperationId" />`, ``, "correlation", "flightCancel"},
		{`=undoing.operationId + &#34;:undo&#34;" target="operationId"`, `=sagaId + &#34;:undo&#34;" target="operationId"`, "operation-id", "flightCancel"},
	} {
		if !strings.Contains(string(text), c.old) {
			t.Fatalf("the model has no %s", c.old)
		}
		defs, err := bpmn.Parse(strings.NewReader(strings.Replace(string(text), c.old, c.with, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if found := bpmn.Lint(defs); !slices.ContainsFunc(found, func(f bpmn.Finding) bool { return f.Rule == c.rule && f.ElementID == c.element }) {
			t.Errorf("%s: found %+v, want %s at %s", c.with, found, c.rule, c.element)
		}
	}
}
