package sagas

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// preference is what a request's Prefer headers ask for (RFC 7240). What is unknown or malformed is ignored, as the RFC says.
type preference struct {
	async   bool
	wait    time.Duration
	waitSet bool
}

func preferences(h http.Header) (p preference) {
	for _, token := range strings.Split(strings.Join(h.Values("Prefer"), ","), ",") {
		name, _, _ := strings.Cut(token, ";") // parameters of a preference mean nothing to us
		name, value, hasValue := strings.Cut(strings.TrimSpace(name), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			p.async = p.async || !hasValue
		case "wait":
			if p.waitSet {
				continue // the first one counts
			}
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil {
				p.wait, p.waitSet = time.Duration(n)*time.Second, true
			}
		}
	}
	return p
}

// waitStep is how often a waiting request looks whether its operation has ended.
const waitStep = 200 * time.Millisecond

// settle waits for the end of an operation when the request prefers that and a place is free, and says in the answer
// what was applied. It gives the record as it stands afterwards. An operation that has ended is never waited for.
func (a *api) settle(w http.ResponseWriter, r request, rec record) record {
	p := preferences(r.Header)
	if p.async {
		w.Header().Add("Preference-Applied", "respond-async")
	}
	if !p.waitSet || rec.terminal() || rec.Gone {
		return rec
	}
	select {
	case a.waiting <- struct{}{}:
		defer func() { <-a.waiting }()
	default:
		return rec // too many wait already: the preference is not applied, and not said to be
	}
	wait := min(p.wait, a.cfg.MaxWait)
	w.Header().Add("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	ctx, cancel := context.WithTimeout(r.whole, wait)
	defer cancel()
	tick := time.NewTicker(waitStep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return rec
		case <-tick.C:
		}
		now, err := a.readOperation(ctx, rec.ID)
		if err != nil {
			if ctx.Err() == nil {
				a.Sagas.cfg.Log.Debug().Str("operation_id", rec.ID).Err(err).Msg("waiting for an operation: read failed, will look again")
			}
			continue
		}
		now.Fingerprint = rec.Fingerprint
		if rec = now; rec.terminal() {
			return rec
		}
	}
}
