package worker

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Declared is what a handler says about itself, for tools that compare it with a model or show it.
type Declared struct {
	JobType  string
	External bool
	Undo     string // job type of the compensation; "" = none
	Manual   string // task in which a person undoes it; "" = none
	Reason   string // why it cannot be compensated; "" = it can, or has no effect
	NoEffect bool
	Pivot    bool
	Control  bool // of the saga machinery
	Orphans  Orphans
	Retain   time.Duration // how long its operations stay after their end, by the option of that name; 0 = as long as Config.Retain says
	Money    bool          // it moves money ([Financial], or [Amount])
}

// Declared lists what the handlers declare, by job type. Compensations stand with the handler they undo, not by themselves.
func (m *Mux) Declared() []Declared {
	var out []Declared
	for _, t := range slices.Sorted(maps.Keys(m.forward)) {
		s := m.forward[t]
		d := Declared{
			JobType: t, External: s.shape == shapeExternal, NoEffect: s.opt.noEffect, Pivot: s.opt.pivot, Control: s.opt.control, Orphans: s.opt.orphans,
			Retain: s.opt.retain, Money: s.opt.financial,
		}
		if s.opt.undo != nil {
			d.Undo = s.opt.undo.jobType
		}
		switch kind, what, _ := strings.Cut(s.opt.policy, ":"); kind {
		case "manual":
			d.Manual = what
		case "none":
			d.Reason = what
		}
		out = append(out, d)
	}
	return out
}
