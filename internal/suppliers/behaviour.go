package suppliers

import "sync"

// Action names what a request asks for, in scripts: the kinds of effects, and Ask for every GET.
type Action string

// Ask is a question about an earlier request; the other actions are spelled like the [Kind] they cause.
const Ask Action = "ask"

// Behaviour is what a simulator does with a request instead of just acting and answering.
// It holds for one request unless Times or Always says otherwise.
type Behaviour struct {
	do      does
	code    string
	release <-chan struct{}
	when    <-chan struct{} // nil = at once
	times   int             // requests it holds for; always = never used up
}

type does int

const (
	doesAct         does = iota // nothing special
	doesRefuse                  // no effect, 409 with code
	doesTimeout                 // no effect, no answer
	doesActTimeout              // effect, no answer
	doesLate                    // effect, answer when released
	doesLandLate                // effect when released, even when the caller has gone, then answer
	doesTwice                   // the request arrives twice; a callback is sent twice
	doesFail                    // no effect, 500
	doesActThenFail             // effect, 500
)

const always = -1

// Refuse answers 409 with a code and has no effect. It holds always: a supplier that is sold out stays so.
func Refuse(code string) Behaviour { return Behaviour{do: doesRefuse, code: code, times: always} }

// TimeoutBefore has no effect and never answers: the connection ends when the caller gives up.
func TimeoutBefore() Behaviour { return Behaviour{do: doesTimeout, times: 1} }

// TimeoutAfter acts and never answers.
func TimeoutAfter() Behaviour { return Behaviour{do: doesActTimeout, times: 1} }

// Late acts at once and answers when release is closed.
func Late(release <-chan struct{}) Behaviour {
	return Behaviour{do: doesLate, release: release, times: 1}
}

// LandLate acts only when release is closed, even when the caller has gone by then.
func LandLate(release <-chan struct{}) Behaviour {
	return Behaviour{do: doesLandLate, release: release, times: 1}
}

// Twice takes the request twice, as if the network had repeated it, and answers once. The hotel, which ignores
// keys, then reserves twice, and that is nobody's fault but its own. The answer to a ticket request, which is a
// callback, is sent twice instead.
func Twice() Behaviour { return Behaviour{do: doesTwice, times: 1} }

// Fail answers 500 to n requests without an effect.
func Fail(n int) Behaviour { return Behaviour{do: doesFail, times: n} }

// ActThenFail acts and answers 500.
func ActThenFail() Behaviour { return Behaviour{do: doesActThenFail, times: 1} }

// When keeps the behaviour from beginning until release is closed. A caller that gives up before is not answered.
func (b Behaviour) When(release <-chan struct{}) Behaviour { b.when = release; return b }

// Times says for how many requests the behaviour holds.
func (b Behaviour) Times(n int) Behaviour { b.times = n; return b }

// Always makes the behaviour hold for every request.
func (b Behaviour) Always() Behaviour { b.times = always; return b }

type target struct {
	booking, segment string
	action           Action
}

type scripts struct {
	mu   sync.Mutex
	list map[target][]Behaviour
	came map[target]int
}

func newScripts() *scripts { return &scripts{list: map[target][]Behaviour{}, came: map[target]int{}} }

// Requests counts the requests for one action on one segment of one booking that have come in, answered or not.
func (w *World) Requests(booking, segment string, action Action) int {
	w.scripts.mu.Lock()
	defer w.scripts.mu.Unlock()
	return w.scripts.came[target{booking, segment, action}]
}

// Script says how requests for one action on one segment of one booking are treated: behaviours are used
// up one after the other, then the simulator is normal again. booking is as workers send it,
// "<tenant>:<booking>"; segment is the booking's own name of it as workers send it, or "payment". A second call appends.
func (w *World) Script(booking, segment string, action Action, behaviours ...Behaviour) {
	s := w.scripts
	s.mu.Lock()
	defer s.mu.Unlock()
	t := target{booking, segment, action}
	s.list[t] = append(s.list[t], behaviours...)
}

// next takes the behaviour for one request.
func (s *scripts) next(t target) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.came) < maxRecords || s.came[t] > 0 {
		s.came[t]++
	}
	list := s.list[t]
	for len(list) > 0 && list[0].times == 0 {
		list = list[1:]
	}
	if len(list) == 0 {
		delete(s.list, t)
		return Behaviour{}
	}
	b := list[0]
	if b.times != always {
		list[0].times--
	}
	s.list[t] = list
	return b
}
