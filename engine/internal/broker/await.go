package broker

import (
	"slices"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// Await is a caller that waits for an instance to complete.
type Await struct {
	instance int64
	fetch    []string
	result   chan string // variables as JSON; capacity 1
}

// Result delivers the root variables once, when the instance has completed.
func (a *Await) Result() <-chan string { return a.result }

// CreateAndAwait starts an instance and waits for its completion from the same moment on.
func (b *Broker) CreateAndAwait(r core.Creation, fetch []string) (*core.Instance, *Await, error) {
	b.mu.Lock()
	if err := b.broken(); err != nil {
		b.mu.Unlock()
		return nil, nil, err
	}
	b.catchUp(b.now())
	inst, err := b.core.CreateInstance(r)
	if err != nil {
		if lost := b.unlock(); lost != nil {
			return nil, nil, lost
		}
		return nil, nil, err
	}
	a := &Await{instance: inst.Key, fetch: fetch, result: make(chan string, 1)}
	b.awaits[inst.Key] = append(b.awaits[inst.Key], a)
	b.settle()
	if err := b.unlock(); err != nil {
		return nil, nil, err
	}
	return inst, a, nil
}

// Forget ends a wait.
func (b *Broker) Forget(a *Await) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.awaits[a.instance]
	if i := slices.Index(l, a); i >= 0 {
		l = slices.Delete(l, i, i+1)
	}
	if len(l) == 0 {
		delete(b.awaits, a.instance)
		return
	}
	b.awaits[a.instance] = l
}

func (b *Broker) answer(inst *core.Instance) {
	for _, a := range b.awaits[inst.Key] {
		a.result <- b.core.ResultVariables(inst, a.fetch).JSON()
	}
	delete(b.awaits, inst.Key)
}
