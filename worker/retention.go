package worker

import (
	"time"

	"github.com/vitrip/journeyman/dedup"
)

// retention says how long operations of the type stay.
func (o options) retention(least time.Duration) dedup.Retention {
	r := dedup.Retention{For: max(o.retain, least)}
	if o.financial {
		r.Keep = dedup.KeepMoney
	}
	return r
}

// RetentionOf says how long operations of a job type stay after their end (spec D1, D3); false = the type is not served here.
func (r *Runtime) RetentionOf(jobType string) (dedup.Retention, bool) {
	for t, s := range r.mux.forward {
		if t == jobType || s.opt.undo != nil && s.opt.undo.jobType == jobType {
			return s.opt.retention(r.cfg.Retain), true
		}
	}
	return dedup.Retention{}, false
}

// LongestRetention is what the rows of a database may need of all types served here: Config.Retain or the longest option Retain.
func (r *Runtime) LongestRetention() time.Duration {
	most := r.cfg.Retain
	for _, s := range r.mux.forward {
		most = max(most, s.opt.retain)
	}
	return most
}
