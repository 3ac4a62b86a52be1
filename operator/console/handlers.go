package console

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"github.com/vitrip/journeyman/operator"
)

const pageSize = 100

type sagasPage struct {
	Filter operator.SagaFilter
	States []string
	Types  []string
	Sagas  []operator.SagaRow
	Next   string // link to the next page, "" = this is the last
}

func (c *console) sagas(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	d := sagasPage{States: operator.SagaStates(), Filter: operator.SagaFilter{
		Tenant: q.Get("tenant"), Type: q.Get("type"), State: q.Get("state"), BusinessKey: q.Get("key"), Stuck: q.Get("stuck") != "", After: q.Get("after"), Limit: pageSize,
	}}
	p := page{Title: "Sagas", Section: "sagas"}
	status := http.StatusOK
	var err error
	if d.Types, err = c.cfg.Desk.SagaTypes(r.Context()); err == nil {
		d.Sagas, err = c.cfg.Desk.Sagas(r.Context(), d.Filter)
	}
	if err != nil {
		status, p.Problem = statusOf(err), err.Error()
	}
	if len(d.Sagas) == pageSize {
		q.Set("after", d.Sagas[pageSize-1].ID)
		d.Next = "/sagas?" + q.Encode()
	}
	p.Data = d
	c.show(w, r, status, "sagas", p)
}

type sagaPage struct {
	operator.Saga
	Diagram    template.HTML // "" = none
	NoDiagram  string        // why there is none
	Full       bool          // drawn in its own size, to scroll
	Incidents  []operator.Incident
	DiagramKey []legend
	FormReason string // of a remediation that was refused
	FormError  string
}

type legend struct{ Class, Text string }

func (c *console) saga(w http.ResponseWriter, r *http.Request) {
	s, err := c.cfg.Desk.Saga(r.Context(), r.PathValue("id"))
	if err != nil {
		c.fail(w, r, statusOf(err), err)
		return
	}
	c.showSaga(w, r, http.StatusOK, s, sagaPage{})
}

func (c *console) showSaga(w http.ResponseWriter, r *http.Request, status int, s operator.Saga, d sagaPage) {
	var err error
	d.Saga, d.Full, d.DiagramKey = s, r.URL.Query().Get("full") != "", diagramKey()
	if d.Diagram, err = c.diagram(r, s, s.Paints()); err != nil {
		d.NoDiagram = err.Error()
	}
	if s.ProcessInstanceKey != 0 {
		list, err := c.cfg.Desk.Incidents(r.Context(), operator.IncidentFilter{ProcessInstanceKey: s.ProcessInstanceKey})
		if err != nil {
			d.Problems = append(d.Problems, "incidents: "+err.Error())
		}
		d.Incidents = list.Incidents
	}
	c.show(w, r, status, "saga", page{Title: s.BusinessKey, Section: "sagas", Notice: c.notice(r), Data: d})
}

type incidentsPage struct {
	Instance operator.Key
	Total    int
	Shown    int
	Groups   []operator.IncidentGroup
	All      bool
}

func (c *console) incidents(w http.ResponseWriter, r *http.Request) {
	p := page{Title: "Incidents", Section: "incidents"}
	d := incidentsPage{All: r.URL.Query().Get("all") != ""}
	status := http.StatusOK
	var err error
	if text := r.URL.Query().Get("instance"); text != "" {
		d.Instance, err = operator.ParseKey("process instance", text)
	}
	if err == nil {
		var list operator.IncidentList
		list, err = c.cfg.Desk.Incidents(r.Context(), operator.IncidentFilter{ProcessInstanceKey: d.Instance, All: d.All})
		d.Total, d.Shown, d.Groups = list.Total, len(list.Incidents), operator.GroupIncidents(list.Incidents)
	}
	if err != nil {
		status, p.Problem = statusOf(err), err.Error()
	}
	p.Notice = c.notice(r)
	p.Data = d
	c.show(w, r, status, "incidents", p)
}

// notice tells what the audit row named in the address says was done. The text comes from the database, never from the address.
func (c *console) notice(r *http.Request) string {
	seq, err := strconv.ParseInt(r.URL.Query().Get("audit"), 10, 64)
	if err != nil {
		return ""
	}
	row, err := c.cfg.Desk.AuditRow(r.Context(), seq)
	if err != nil {
		return ""
	}
	switch row.Action {
	case operator.ActionRemediate:
		return fmt.Sprintf("%s of %s is recorded as audit row %d; its partner gets the final answer.", row.Action, row.Target, row.Seq)
	case operator.ActionDismissCall, operator.ActionAskAgain:
		return fmt.Sprintf("%s of %s is recorded as audit row %d.", row.Action, row.Target, row.Seq)
	}
	return fmt.Sprintf("%s of %s is recorded as audit row %d and its command is queued; the engine is told within seconds.", row.Action, row.Target, row.Seq)
}

type incidentPage struct {
	operator.Incident
	FormReason  string
	FormRetries string
	FormError   string
}

func (c *console) incident(w http.ResponseWriter, r *http.Request) {
	key, err := operator.ParseKey("incident", r.PathValue("key"))
	if err != nil {
		c.fail(w, r, http.StatusNotFound, err)
		return
	}
	i, err := c.cfg.Desk.Incident(r.Context(), key)
	if err != nil {
		c.fail(w, r, statusOf(err), err)
		return
	}
	c.show(w, r, http.StatusOK, "incident", page{Title: "Incident " + key.String(), Section: "incidents", Notice: c.notice(r), Data: incidentPage{Incident: i, FormRetries: "1"}})
}

// retry queues a retry and answers with a redirect, so that a reload does not ask again. A refusal is shown beside the form,
// with what was typed.
func (c *console) retry(w http.ResponseWriter, r *http.Request) {
	key, err := operator.ParseKey("incident", r.PathValue("key"))
	if err != nil {
		c.fail(w, r, http.StatusNotFound, err)
		return
	}
	if err := r.ParseForm(); err != nil {
		c.badForm(w, r, err)
		return
	}
	if !c.mayAct(w, r, operator.ActionRetry, "incident:"+c.cfg.Desk.Cluster()+":"+key.String()) {
		return
	}
	form := incidentPage{FormReason: r.PostFormValue("reason"), FormRetries: r.PostFormValue("retries")}
	result, err := c.queueRetry(r, key, form)
	if err == nil {
		http.Redirect(w, r, "/incidents?"+url.Values{"audit": {strconv.FormatInt(result.AuditSeq, 10)}}.Encode(), http.StatusSeeOther)
		return
	}
	status, shown := statusOf(err), err
	if form.Incident, err = c.cfg.Desk.Incident(r.Context(), key); err != nil {
		c.fail(w, r, status, errors.Join(shown, err))
		return
	}
	form.FormError = shown.Error()
	c.show(w, r, status, "incident", page{Title: "Incident " + key.String(), Section: "incidents", Data: form})
}

func (c *console) queueRetry(r *http.Request, key operator.Key, form incidentPage) (operator.RetryResult, error) {
	retries := int64(0)
	if form.FormRetries != "" {
		var err error
		if retries, err = strconv.ParseInt(form.FormRetries, 10, 32); err != nil || retries < 1 {
			return operator.RetryResult{}, &operator.FieldError{Field: "retries", Value: form.FormRetries, Want: "1 to 100"}
		}
	}
	return c.cfg.Desk.RetryIncident(r.Context(), operator.RetryRequest{Key: key, Actor: c.actor(r), Reason: form.FormReason, Retries: int32(retries)})
}

type auditPage struct {
	Rows     []operator.AuditRow
	Next     int64
	Verified *operator.Verification
}

func (c *console) audit(w http.ResponseWriter, r *http.Request) {
	before := int64(0)
	var err error
	if text := r.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			c.fail(w, r, http.StatusUnprocessableEntity, &operator.FieldError{Field: "before", Value: text, Want: "the number of an audit row"})
			return
		}
	}
	var d auditPage
	if d.Rows, err = c.cfg.Desk.Audit(r.Context(), r.URL.Query().Get("target"), before, pageSize); err != nil {
		c.fail(w, r, statusOf(err), err)
		return
	}
	if len(d.Rows) == pageSize {
		d.Next = d.Rows[pageSize-1].Seq
	}
	if r.URL.Query().Get("verify") != "" {
		v, err := c.cfg.Desk.VerifyAudit(r.Context())
		if err != nil {
			c.fail(w, r, statusOf(err), err)
			return
		}
		d.Verified = &v
	}
	c.show(w, r, http.StatusOK, "audit", page{Title: "Audit", Section: "audit", Data: d})
}
