package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/vitrip/journeyman/operator"
)

// remediate closes a saga that was left to a person.
func (c *console) remediate(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := r.ParseForm(); err != nil {
		c.badForm(w, r, err)
		return
	}
	if !c.mayAct(w, r, operator.ActionRemediate, "saga:"+id) {
		return
	}
	out, err := c.cfg.Desk.RemediateSaga(r.Context(), operator.RemediateRequest{
		SagaID: id, Actor: c.actor(r), Reason: r.PostFormValue("reason"), Outcome: r.PostFormValue("outcome"),
	})
	if err == nil {
		http.Redirect(w, r, "/sagas/"+url.PathEscape(id)+"?"+url.Values{"audit": {strconv.FormatInt(out.AuditSeq, 10)}}.Encode(), http.StatusSeeOther)
		return
	}
	saga, readErr := c.cfg.Desk.Saga(r.Context(), id)
	if readErr != nil {
		c.fail(w, r, statusOf(err), errors.Join(err, readErr))
		return
	}
	c.showSaga(w, r, statusOf(err), saga, sagaPage{FormReason: r.PostFormValue("reason"), FormError: err.Error()})
}
