package worker

import "github.com/rs/zerolog"

// logJob is the log of a job that need not have become a task.
func (w *Worker) logJob(h *held) *zerolog.Logger {
	text := func(name string) string {
		s, _ := h.vars[name].(string)
		return s
	}
	l := w.cfg.Log.With().Str("job_type", h.job.Type).Int64("job_key", h.job.Key).Int64("process_instance_id", h.job.ProcessInstanceKey).
		Str("operation_id", text(varOperationID)).Str("business_key", text(varBusinessKey)).Str("correlation_id", text(varCorrelationID)).Logger()
	return &l
}
