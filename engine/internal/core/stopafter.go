package core

import "slices"

// stopWhenAsked ends the process instance after e, when a runtime instruction
// names e's element. The end is a step of its own: e may end in the middle of something.
func (c *Core) stopWhenAsked(e *Element) {
	inst := e.Inst
	if inst == nil || inst.stopping || e.Inner || e.Parent == nil || !slices.Contains(inst.stopAfter, e.Node.ID) {
		return
	}
	inst.stopping = true
	c.later(func() { c.terminate(inst.Root) })
}
