package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// count is what the ledgers show of one segment of one booking.
type count struct{ made, ended int }

func (c count) standing() int { return c.made - c.ended }

// tally counts the effects of one kind and what ended them. Every effect must be ended at most once, by its own undo.
func (s *stage) tally(r *run, segment string, kind suppliers.Kind) (c count, wrong []string) {
	ended, made := map[string]int{}, map[string]int{}
	for _, e := range s.world.Ledger() {
		if e.Booking != r.businessKey() || e.Segment != segment || !strings.HasPrefix(e.Reference, r.id+":") {
			continue
		}
		switch e.Kind {
		case kind:
			c.made++
			if made[e.Reference]++; made[e.Reference] > 1 && segment != "hotel" && segment != secondHotel { // INV1; hotels ignore keys
				wrong = append(wrong, fmt.Sprintf("%s %s %s was made %d times", segment, kind, e.Reference, made[e.Reference]))
			}
			if e.Key != e.Reference {
				wrong = append(wrong, fmt.Sprintf("%s %s has key %s, want its reference %s", segment, kind, e.Key, e.Reference))
			}
		case kind.Ends():
			c.ended++
			if ended[e.ID]++; ended[e.ID] > 1 {
				wrong = append(wrong, fmt.Sprintf("%s %s %s was ended %d times", segment, kind, e.ID, ended[e.ID]))
			}
			if e.Key != e.Reference+":undo" {
				wrong = append(wrong, fmt.Sprintf("%s %s has key %s, want %s:undo", segment, e.Kind, e.Key, e.Reference))
			}
		}
	}
	return c, wrong
}

// ledgerFaults says how the suppliers' ledgers differ from what the run's answer promises.
func (s *stage) ledgerFaults(r *run) (wrong []string) {
	if !r.end.final() {
		return nil // stuck, or left to a person: judged by that
	}
	if r.saga == amendment.TypeName {
		return s.amendmentFaults(r)
	}
	kind, payment := suppliers.Reserve, suppliers.Authorize
	if r.saga == refund.TypeName {
		kind, payment = suppliers.Refund, suppliers.Refund
	}
	completed := r.end.State == "completed"
	for _, segment := range r.segments() {
		c, bad := s.tally(r, segment, kind)
		wrong = append(wrong, bad...)
		most := 0
		if (segment == "hotel" || segment == secondHotel) && r.doubled() {
			most = min(1, max(0, c.made-1))
		}
		want := 0
		if completed {
			want = 1
		}
		if got := c.standing(); got < want || got > want+most {
			wrong = append(wrong, fmt.Sprintf("%s: %d %s stand after %s, want %d (made %d, undone %d)", segment, got, kind, r.end.State, want, c.made, c.ended))
		}
		if completed && c.ended > 0 && c.made == 1 {
			wrong = append(wrong, fmt.Sprintf("%s: a standing %s was undone", segment, kind))
		}
	}
	c, bad := s.tally(r, "payment", payment)
	wrong = append(wrong, bad...)
	byHand := slices.Contains(r.acts, "task remediate")
	if r.saga == refund.TypeName {
		if want := asInt(completed && !byHand); c.made != want && !(byHand && c.made <= 1) {
			wrong = append(wrong, fmt.Sprintf("payment: paid back %d times after %s, want %d", c.made, r.end.State, want))
		}
		return wrong
	}
	if want := asInt(completed); c.standing() != want || completed && c.made != 1 {
		wrong = append(wrong, fmt.Sprintf("payment: %d authorizations stand after %s, want %d (made %d, voided %d)", c.standing(), r.end.State, want, c.made, c.ended))
	}
	captures, _ := s.tally(r, "payment", suppliers.Capture)
	if want := asInt(completed && !byHand); captures.made != want && !(byHand && captures.made <= 1) {
		wrong = append(wrong, fmt.Sprintf("payment: captured %d times after %s, want %d", captures.made, r.end.State, want))
	}
	return wrong
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// judge compares each run with what is documented for its plan.
func (s *stage) judge(runs []*run) {
	s.Helper()
	for _, r := range runs {
		if r.manual {
			if !slices.Contains(r.expected(), "manual") {
				r.fail("left to a person: %s", s.stuck(r))
			}
			continue
		}
		if !r.end.final() {
			if len(r.wrong) == 0 {
				r.fail("no final answer")
			}
			continue
		}
		if undone := slices.Sorted(slices.Values(r.end.Undone)); len(slices.Compact(undone)) != len(r.end.Undone) {
			r.fail("undone twice: %v", r.end.Undone) // INV9
		}
		if want := r.expected(); !slices.Contains(want, r.end.State) {
			r.fail("ended %s %s, want %v", r.end.State, r.end.Reason.Code, want)
		}
		if len(r.acts) > 0 && !r.person() && !r.random {
			r.fail("a person had to act: %s", strings.Join(r.acts, "; "))
		}
		r.wrong = append(r.wrong, s.ledgerFaults(r)...)
		s.same(r)
		s.ended(r)
	}
}

// ended checks the engine's history: the instance is over, nobody waits.
func (s *stage) ended(r *run) {
	s.Helper()
	var instance int64
	s.must(s.pool.QueryRow(s.ctx, `SELECT coalesce(process_instance_key, 0) FROM journeyman.saga WHERE id = $1`, r.id).Scan(&instance))
	if instance == 0 {
		return
	}
	i, err := s.rest.ProcessInstance(s.ctx, instance)
	s.must(err)
	if i.State == "ACTIVE" {
		r.fail("process instance %d is still active: %s", instance, s.stuck(r))
	}
	incidents, err := s.rest.SearchIncidents(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(instance), "state": "ACTIVE"}})
	s.must(err)
	if len(incidents.Items) > 0 {
		r.fail("%d active incidents", len(incidents.Items))
	}
}

// result is a run in one table cell.
func (s *stage) result(r *run) string {
	text := r.end.State
	if r.manual {
		text = "manual"
	}
	if text == "" {
		text = "no end"
	}
	if r.end.Reason.Code != "" {
		text += " " + r.end.Reason.Code
	}
	if len(r.acts) > 0 {
		who := "incident resolved"
		if slices.Contains(r.acts, "task remediate") {
			who = "by hand"
		}
		text += ", " + who
	}
	kind := suppliers.Reserve
	if r.saga == refund.TypeName {
		kind = suppliers.Refund
	}
	if c, _ := s.tally(r, "hotel", kind); r.end.final() && c.standing() > asInt(r.end.State == "completed") {
		text += ", double at the hotel"
	}
	if len(r.wrong) > 0 {
		text += " WRONG"
	}
	return text
}

// report says what is wrong with the runs.
func (s *stage) report(runs []*run) {
	s.Helper()
	for _, r := range runs {
		for _, w := range r.wrong {
			s.Errorf("%s (%s, saga %s): %s", r.plan, r.booking, r.id, w)
		}
	}
}

// audit checks what all runs share: events and their order (INV4 to INV6), one row one event (INV3), legal moves (INV12).
func (s *stage) audit() {
	s.Helper()
	still := s.stillness()
	s.until("tickets issued, outbox drained", time.Minute, func() bool {
		var n int
		s.must(s.pool.QueryRow(s.ctx, `SELECT (SELECT count(*) FROM journeyman.outbox)
			+ (SELECT count(*) FROM journeyman.saga WHERE type = 'ticketing' AND closed_at IS NULL)`).Scan(&n))
		if n > 0 && still.quiet() {
			s.advance(15 * time.Second)
			still.reset()
		}
		return n == 0
	})
	before, err := audit.ReadWitness(s.ctx, s.pool)
	s.must(err)
	records, err := audit.Log{Brokers: s.brokers, Skip: func(topic string) bool { return topic == "platform.dlq.v1" }}.Read(s.ctx)
	s.must(err)
	staged, err := audit.ReadWitness(s.ctx, s.pool)
	s.must(err)
	due := map[string]bool{} // sweeps go on: what was staged after Kafka was read need not stand there
	for _, e := range before {
		due[e.ID] = true
	}
	for _, k := range records {
		due[k.ID] = true
	}
	staged = slices.DeleteFunc(staged, func(e audit.Staged) bool { return !due[e.ID] })
	report := audit.Examine(audit.Input{Staged: staged, Records: records})
	for _, f := range report.Findings {
		if !strings.HasPrefix(f, "only ") {
			s.Errorf("events: %s", f)
		}
	}
	if report.EventsCommitted == 0 {
		s.Error("no event was staged: the audit saw nothing")
	}
	s.checkMoves()
	s.Logf("events: %d committed, %d in Kafka, %d delivered twice", report.EventsCommitted, report.EventsInKafka, report.DuplicatesDelivered)
}

// installMoves makes the database write down every move of what has states.
func installMoves(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		CREATE SCHEMA faults_witness;
		CREATE TABLE faults_witness.move (n bigint GENERATED ALWAYS AS IDENTITY, what text NOT NULL, id text NOT NULL, before text NOT NULL, after text NOT NULL);
		CREATE FUNCTION faults_witness.booking() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF OLD.state <> NEW.state THEN INSERT INTO faults_witness.move (what, id, before, after) VALUES ('booking', NEW.business_key, OLD.state, NEW.state); END IF; RETURN NULL; END $$;
		CREATE FUNCTION faults_witness.saga() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF OLD.decision IS NOT NULL AND NEW.decision IS DISTINCT FROM OLD.decision THEN INSERT INTO faults_witness.move (what, id, before, after) VALUES ('decision', NEW.id, OLD.decision, coalesce(NEW.decision, '')); END IF;
			IF OLD.closed_at IS NOT NULL AND (NEW.closed_at IS DISTINCT FROM OLD.closed_at OR NEW.state <> OLD.state) THEN INSERT INTO faults_witness.move (what, id, before, after) VALUES ('closed', NEW.id, OLD.state, NEW.state); END IF;
			RETURN NULL; END $$;
		CREATE FUNCTION faults_witness.step() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF OLD.undo_state = 'done' AND NEW.undo_state <> 'done' THEN INSERT INTO faults_witness.move (what, id, before, after) VALUES ('undo', NEW.operation_id, OLD.undo_state, NEW.undo_state); END IF; RETURN NULL; END $$;
		CREATE FUNCTION faults_witness.record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF OLD.state <> 'in_progress' AND (NEW.state <> OLD.state OR NEW.final IS DISTINCT FROM OLD.final) THEN INSERT INTO faults_witness.move (what, id, before, after) VALUES ('record', NEW.operation_id, OLD.state, NEW.state); END IF; RETURN NULL; END $$;
		CREATE TRIGGER faults_moves AFTER UPDATE ON journeyman.tour_booking FOR EACH ROW EXECUTE FUNCTION faults_witness.booking();
		CREATE TRIGGER faults_moves AFTER UPDATE ON journeyman.saga FOR EACH ROW EXECUTE FUNCTION faults_witness.saga();
		CREATE TRIGGER faults_moves AFTER UPDATE ON journeyman.saga_step FOR EACH ROW EXECUTE FUNCTION faults_witness.step();
		CREATE TRIGGER faults_moves AFTER UPDATE ON journeyman_records.record FOR EACH ROW EXECUTE FUNCTION faults_witness.record();`)
	return err
}

// checkMoves holds what the triggers saw against the state machine; the other kinds of moves are never legal.
func (s *stage) checkMoves() {
	s.Helper()
	rows, err := s.pool.Query(s.ctx, `SELECT what, id, before, after FROM faults_witness.move ORDER BY n`)
	s.must(err)
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var what, id, before, after string
		s.must(rows.Scan(&what, &id, &before, &after))
		if what == "booking" && legal(tourbooking.State(before), tourbooking.State(after)) {
			seen++
			continue
		}
		s.Errorf("%s %s moved from %s to %s", what, id, before, after)
	}
	s.must(rows.Err())
	if seen == 0 {
		s.Error("no booking moved: the witness saw nothing")
	}
}

func legal(before, after tourbooking.State) bool {
	for _, e := range []tourbooking.Event{
		tourbooking.Quote, tourbooking.SegmentConfirmed, tourbooking.SegmentsComplete, tourbooking.PaymentAuthorized, tourbooking.Confirm, tourbooking.GiveUp,
		tourbooking.SegmentReleased, tourbooking.EndCompensated, tourbooking.EndFailed, tourbooking.EndExpired, tourbooking.EndCancelled, tourbooking.Reopen,
		tourbooking.RequestTickets, tourbooking.IssueTickets, tourbooking.GiveUpTickets, tourbooking.BeginCancellation, tourbooking.EndCancellation,
		tourbooking.ResumeConfirmed, tourbooking.ResumeTicketing, tourbooking.ResumeTicketed,
		tourbooking.BeginAmendment, tourbooking.EndAmendment, tourbooking.EndAmendmentAsked, tourbooking.EndAmendmentIssued,
	} {
		if next, ok := tourbooking.Next(before, e); ok && next == after {
			return true
		}
	}
	return false
}
