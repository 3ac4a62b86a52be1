package core

import (
	"iter"
	"slices"
)

// owned is a record of one process instance.
type owned interface{ owner() *Instance }

func (i *Instance) owner() *Instance { return i }
func (e *Element) owner() *Instance  { return e.Inst }
func (j *Job) owner() *Instance      { return j.El.Inst }
func (i *Incident) owner() *Instance { return i.El.Inst }
func (v *Variable) owner() *Instance { return v.Scope.Inst }
func (t *UserTask) owner() *Instance { return t.El.Inst }

// ordered holds the records of all instances in the order they were made.
// Records of a forgotten instance are unseen at once; their place is freed when
// they are a fifth of the list, so that forgetting costs the same however long the list is.
type ordered[T owned] struct {
	list []T
	gone int // records of forgotten instances in list
}

// slack is how many forgotten records may always lie in a list.
const slack = 256

func (o *ordered[T]) add(v T) { o.list = append(o.list, v) }

// all yields what is not forgotten, oldest first.
func (o *ordered[T]) all() iter.Seq[T] {
	list := o.list
	return func(yield func(T) bool) {
		for _, v := range list {
			if !v.owner().forgotten && !yield(v) {
				return
			}
		}
	}
}

func (o *ordered[T]) len() int { return len(o.list) - o.gone }

// forget counts n records of an instance that was just marked as forgotten.
func (o *ordered[T]) forget(n int) {
	o.gone += n
	if o.gone < slack || o.gone*5 < len(o.list) {
		return
	}
	o.list = slices.DeleteFunc(o.list, func(v T) bool { return v.owner().forgotten })
	o.gone = 0
	if cap(o.list) > 4*len(o.list)+slack {
		o.list = slices.Clone(o.list)
	}
}
