package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
)

// Capture is the whole state at one moment. Taking it copies only what can
// change and is a small part of the work; [Capture.WriteTo] is the rest and
// needs no lock: the core may go on meanwhile.
type Capture struct {
	core      savedCore // what is few; its long lists are empty
	elements  []heldElement
	instances []heldInstance
	jobs      []savedJob
	incidents []savedIncident
	variables []heldVariable
	tasks     []savedTask
}

// Capture takes the state. An error means that steps are queued: the state is between two states.
func (c *Core) Capture() (*Capture, error) {
	if !c.Idle() {
		return nil, fmt.Errorf("the state is between two steps: %d are queued", len(c.queue)-c.head)
	}
	random, err := c.random.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("save the random numbers: %w", err)
	}
	h := &savedHistory{Limit: c.history.limit, Age: c.history.age, Ended: make([]int64, 0, c.history.len()), Timer: saveTimer(c.history.timer)}
	for _, i := range c.history.ended[c.history.first:] {
		h.Ended = append(h.Ended, i.Key)
	}
	s := &Capture{
		core: savedCore{
			Now: stampOf(c.now), Started: stampOf(c.started), LastKey: c.lastKey, Seq: c.seq, Random: random, LastVersion: maps.Clone(c.lastVersion),
			Processes: make([]savedProcess, 0, len(c.procOrder)), History: h,
		},
		elements: saveAll(&c.elemOrder, holdElement), instances: saveAll(&c.instOrder, holdInstance), jobs: saveAll(&c.jobOrder, saveJob),
		incidents: saveAll(&c.incOrder, saveIncident), variables: saveAll(&c.varOrder, holdVariable), tasks: saveAll(&c.taskOrder, saveTask),
	}
	for _, p := range c.procOrder {
		s.core.Processes = append(s.core.Processes, saveProcess(p))
	}
	for _, list := range c.messages {
		for _, m := range list {
			s.core.Messages = append(s.core.Messages, saveMessage(m))
		}
	}
	slices.SortFunc(s.core.Messages, func(a, b savedMessage) int { return int(a.Key - b.Key) })
	for _, list := range c.starts {
		for _, sub := range list {
			if !sub.closed {
				s.core.Starts = append(s.core.Starts, holdSub(sub).save())
			}
		}
	}
	slices.SortFunc(s.core.Starts, func(a, b savedSub) int { return int(a.Key - b.Key) })
	return s, nil
}

func saveAll[T owned, S any](list *ordered[T], save func(T) S) []S {
	out := make([]S, 0, list.len())
	for v := range list.all() {
		out = append(out, save(v))
	}
	return out
}

// WriteTo writes the state as one JSON object, for [Restore], piece by piece.
func (s *Capture) WriteTo(w io.Writer) (int64, error) {
	e := &pieces{to: w}
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false) // values keep their bytes
	if e.value(s.core); e.err != nil {
		return 0, e.err
	}
	e.buf.Truncate(e.buf.Len() - 1) // the closing brace: the lists follow
	list(e, "instances", saved(s.instances))
	list(e, "elements", saved(s.elements))
	list(e, "jobs", slices.Values(s.jobs))
	list(e, "incidents", slices.Values(s.incidents))
	list(e, "variables", saved(s.variables))
	list(e, "tasks", slices.Values(s.tasks))
	e.buf.WriteString("}\n")
	e.flush(0)
	return e.written, e.err
}

// saved yields what is held in the form in which it is written.
func saved[S any, H interface{ save() S }](held []H) iter.Seq[S] {
	return func(yield func(S) bool) {
		for _, h := range held {
			if !yield(h.save()) {
				return
			}
		}
	}
}

// pieces is JSON that is written while it is made; after an error it makes nothing.
type pieces struct {
	to      io.Writer
	buf     bytes.Buffer
	enc     *json.Encoder
	written int64
	err     error
}

func (e *pieces) value(v any) {
	if err := e.enc.Encode(v); err != nil && e.err == nil {
		e.err = fmt.Errorf("encode the state: %w", err)
	}
	e.buf.Truncate(max(0, e.buf.Len()-1)) // the encoder's line end
}

// flush hands on what is there, when it is more than keep bytes.
func (e *pieces) flush(keep int) {
	if e.err != nil || e.buf.Len() <= keep {
		return
	}
	n, err := e.to.Write(e.buf.Bytes())
	e.written += int64(n)
	e.buf.Reset()
	if err != nil {
		e.err = fmt.Errorf("write the state: %w", err)
	}
}

// list adds a property that is a list of items.
func list[T any](e *pieces, name string, items iter.Seq[T]) {
	e.buf.WriteString(`,"` + name + `":[`)
	first := true
	for v := range items {
		if !first {
			e.buf.WriteByte(',')
		}
		first = false
		e.value(v)
		if e.flush(64 << 10); e.err != nil {
			return
		}
	}
	e.buf.WriteByte(']')
}

// Dump is the whole state as canonical JSON: equal states give equal bytes. The
// time of the last call is left out, because time that passes is no change.
// An error means that steps are queued: the state is between two states.
func (c *Core) Dump() ([]byte, error) {
	s, err := c.Capture()
	if err != nil {
		return nil, err
	}
	s.core.Now = stamp{}
	return s.bytes()
}

// Snapshot is the whole state, for [Restore]. It fails like [Core.Capture].
func (c *Core) Snapshot() ([]byte, error) {
	s, err := c.Capture()
	if err != nil {
		return nil, err
	}
	return s.bytes()
}

func (s *Capture) bytes() ([]byte, error) {
	var b bytes.Buffer
	_, err := s.WriteTo(&b)
	return b.Bytes(), err
}
