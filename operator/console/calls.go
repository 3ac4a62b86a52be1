package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vitrip/journeyman/operator"
)

// effectsPage is what the page of effects shows, with the form of an act on a call that was refused.
type effectsPage struct {
	operator.Effects
	FormOperation, FormReason, FormFor, FormError string
}

func (c *console) effects(w http.ResponseWriter, r *http.Request) {
	c.showEffects(w, r, http.StatusOK, effectsPage{})
}

func (c *console) showEffects(w http.ResponseWriter, r *http.Request, status int, d effectsPage) {
	var err error
	if d.Effects, err = c.cfg.Desk.Effects(r.Context(), 0); err != nil {
		c.fail(w, r, statusOf(err), err)
		return
	}
	p := page{Title: "Effects", Section: "effects", Notice: c.notice(r), Data: d}
	if d.FormError != "" {
		p.Problem = "Not done: " + d.FormError
	}
	c.show(w, r, status, "effects", p)
}

// dismissCall settles a call that was never seen.
func (c *console) dismissCall(w http.ResponseWriter, r *http.Request) {
	c.actOnCall(w, r, operator.ActionDismissCall, func(ask operator.CallRequest, _ string) (operator.CallResult, error) {
		return c.cfg.Desk.DismissCall(r.Context(), ask)
	})
}

// askAgain has a supplier asked for longer about a call that was never seen.
func (c *console) askAgain(w http.ResponseWriter, r *http.Request) {
	c.actOnCall(w, r, operator.ActionAskAgain, func(ask operator.CallRequest, further string) (operator.CallResult, error) {
		d, err := time.ParseDuration(further)
		if err != nil {
			return operator.CallResult{}, &operator.FieldError{Field: "for", Value: further, Want: "a duration such as 48h"}
		}
		return c.cfg.Desk.AskAgain(r.Context(), operator.AskAgainRequest{CallRequest: ask, For: d})
	})
}

// actOnCall answers with a redirect, so that a reload does not ask again. A refusal keeps what was typed.
func (c *console) actOnCall(w http.ResponseWriter, r *http.Request, action string, act func(ask operator.CallRequest, further string) (operator.CallResult, error)) {
	id := r.PathValue("id")
	if err := r.ParseForm(); err != nil {
		c.badForm(w, r, err)
		return
	}
	if !c.mayAct(w, r, action, "operation:"+id) {
		return
	}
	form := effectsPage{FormOperation: id, FormReason: r.PostFormValue("reason"), FormFor: r.PostFormValue("for")}
	out, err := act(operator.CallRequest{OperationID: id, Actor: c.actor(r), Reason: form.FormReason}, form.FormFor)
	if err != nil {
		form.FormError = err.Error()
		c.showEffects(w, r, statusOf(err), form)
		return
	}
	http.Redirect(w, r, "/effects?"+url.Values{"audit": {strconv.FormatInt(out.AuditSeq, 10)}}.Encode(), http.StatusSeeOther)
}
