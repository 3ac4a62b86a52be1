package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Booking is one entry of the script: what a partner asks for, what goes wrong
// meanwhile, and how it must end. One JSON file holds one Booking.
type Booking struct {
	Name   string          `json:"name"`             // unique in the script
	About  string          `json:"about"`            // one sentence for the reader
	Tenant string          `json:"tenant"`           // partner; its bearer token is made by the demo
	Key    string          `json:"key"`              // Idempotency-Key
	Type   string          `json:"type"`             // operation type
	Body   json.RawMessage `json:"body"`             // request as sent; "$after.…" strings are taken from the booking named by After
	Repeat int             `json:"repeat,omitempty"` // send the same request so many times at once; 0 = once
	After  string          `json:"after,omitempty"`  // starts when this one has ended
	Alone  bool            `json:"alone,omitempty"`  // nothing else runs meanwhile: it moves the clocks
	Faults []Fault         `json:"faults,omitempty"` // what the suppliers do to it
	Acts   []Act           `json:"acts,omitempty"`   // what happens meanwhile
	Kill   []string        `json:"kill,omitempty"`   // "point@step": the worker process is killed there
	Expect Expect          `json:"expect"`
}

// Fault makes one supplier misbehave for this booking.
type Fault struct {
	Segment string `json:"segment"`         // id of a segment of the booking, or payment
	Action  string `json:"action"`          // reserve, cancel, authorize, …
	Do      string `json:"do"`              // refuse, time_out_before, time_out_after, late, land_late, twice, fail or act_then_fail
	Code    string `json:"code,omitempty"`  // refuse: the supplier's code
	Hold    bool   `json:"hold,omitempty"`  // refuse: only once an act releases it; late and land_late always wait for that
	Times   int    `json:"times,omitempty"` // for so many requests; 0 = as the fault is by nature
}

// Act is something the demo does once its condition is met. Exactly one of the actions is set.
type Act struct {
	When      string `json:"when"`                // see condition
	Cancel    bool   `json:"cancel,omitempty"`    // the partner cancels
	Advance   string `json:"advance,omitempty"`   // both clocks move by this Go duration
	Release   string `json:"release,omitempty"`   // "segment.action": a held supplier answers
	Duplicate bool   `json:"duplicate,omitempty"` // the record of the event in When is produced again, byte for byte
}

// Expect is how a booking must end.
type Expect struct {
	States  []string          `json:"states"`            // any of completed, failed, expired; "refused" = 4xx
	Reason  string            `json:"reason,omitempty"`  // code of a failure, "" = not checked
	Effects map[string]string `json:"effects,omitempty"` // by segment: held, released, none, or free for one of the last two
	Undo    []string          `json:"undo,omitempty"`    // segments in the order they were released, "" = not checked
}

var faults = []string{"refuse", "time_out_before", "time_out_after", "late", "land_late", "twice", "fail", "act_then_fail"} //nolint:gochecknoglobals // a constant list

// elementStates are those of an element instance that an act may wait for; "ENDED" is COMPLETED or TERMINATED.
var elementStates = []string{"COMPLETED", "TERMINATED", "ACTIVE", "ENDED"} //nolint:gochecknoglobals // a constant list

// condition is one part of a parsed Act.When: "effect <segment>.<kind>", "call <segment>.<action>",
// "event <type>", "element <step> <STATE>", see elementStates, or "killed <point>". Parts are joined by " and ".
type condition struct{ kind, what, state string }

func parseConditions(s string) ([]condition, error) {
	var all []condition
	for _, part := range strings.Split(s, " and ") {
		c, err := parseCondition(part)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCondition(s string) (condition, error) {
	f := strings.Fields(s)
	switch {
	case len(f) == 2 && (f[0] == "effect" || f[0] == "call") && strings.Count(f[1], ".") == 1,
		len(f) == 2 && (f[0] == "event" || f[0] == "killed"):
		return condition{kind: f[0], what: f[1]}, nil
	case len(f) == 3 && f[0] == "element" && slices.Contains(elementStates, f[2]):
		return condition{kind: f[0], what: f[1], state: f[2]}, nil
	}
	return condition{}, fmt.Errorf(`when %q: want "effect <segment>.<kind>", "call <segment>.<action>", "event <type>", "killed <point>" or "element <step> <%s>"`, s, strings.Join(elementStates, "|"))
}

// LoadScript reads every *.json of files, in the order of their names, and refuses what it does not understand.
func LoadScript(files fs.FS) ([]Booking, error) {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []Booking
	seen := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		b, err := parseBooking(text)
		if err != nil {
			return nil, fmt.Errorf("booking %s: %w", path.Base(name), err)
		}
		if other, ok := seen[b.Name]; ok {
			return nil, fmt.Errorf("booking %s: name %q is taken by %s", path.Base(name), b.Name, other)
		}
		if _, ok := seen[b.After]; b.After != "" && !ok {
			return nil, fmt.Errorf("booking %s: after %q: no earlier file has that name", path.Base(name), b.After)
		}
		seen[b.Name] = path.Base(name)
		all = append(all, b)
	}
	if len(all) == 0 {
		return nil, errors.New("the script holds no bookings")
	}
	return all, nil
}

func parseBooking(text []byte) (Booking, error) {
	var b Booking
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		return b, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return b, errors.New("data after the JSON object")
	}
	return b, b.check()
}

func (b Booking) check() error {
	var errs []error
	for field, value := range map[string]string{"name": b.Name, "about": b.About, "tenant": b.Tenant, "type": b.Type} {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is empty", field))
		}
	}
	if len(b.Body) == 0 {
		errs = append(errs, errors.New("body is missing"))
	}
	if b.Repeat < 0 {
		errs = append(errs, fmt.Errorf("repeat is %d, want 0 or more", b.Repeat))
	}
	if len(b.Expect.States) == 0 {
		errs = append(errs, errors.New("expect.states is empty"))
	}
	for _, s := range b.Expect.States {
		if !slices.Contains([]string{"completed", "failed", "expired", "refused"}, s) {
			errs = append(errs, fmt.Errorf("expect.states: %q, want completed, failed, expired or refused", s))
		}
	}
	for segment, e := range b.Expect.Effects {
		if !slices.Contains([]string{"held", "released", "none", "free"}, e) {
			errs = append(errs, fmt.Errorf("expect.effects.%s: %q, want held, released, none or free", segment, e))
		}
	}
	for _, f := range b.Faults {
		if !slices.Contains(faults, f.Do) {
			errs = append(errs, fmt.Errorf("faults: do %q is not known", f.Do))
		}
	}
	for _, k := range b.Kill {
		if point, _, ok := strings.Cut(k, "@"); !ok || point == "" {
			errs = append(errs, fmt.Errorf("kill %q: want point@step or point@", k))
		}
	}
	for _, a := range b.Acts {
		errs = append(errs, b.checkAct(a))
	}
	return errors.Join(errs...)
}

func (b Booking) checkAct(a Act) error {
	conditions, err := parseConditions(a.When)
	if err != nil {
		return err
	}
	n := 0
	for _, set := range []bool{a.Cancel, a.Advance != "", a.Release != "", a.Duplicate} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("act when %q: %d actions, want exactly one of cancel, advance, release, duplicate", a.When, n)
	}
	if a.Advance != "" {
		if d, err := time.ParseDuration(a.Advance); err != nil || d <= 0 {
			return fmt.Errorf("act when %q: advance %q, want a positive duration such as 31m", a.When, a.Advance)
		}
		if !b.Alone {
			return fmt.Errorf("act when %q: a booking that moves the clocks must be alone", a.When)
		}
	}
	if a.Duplicate && (len(conditions) > 1 || conditions[0].kind != "event") {
		return fmt.Errorf("act when %q: only an event can be duplicated", a.When)
	}
	return nil
}
