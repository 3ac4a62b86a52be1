package sagas

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// etag names the state of a record: another attempt or a later event gives another one. It is strong, as the body
// depends on nothing else.
func (r record) etag() string { return `"` + r.ID + "." + strconv.FormatInt(r.Sequence, 10) + `"` }

var errIfMatch = errors.New("header If-Match must be * or a list of entity tags in quotes")

// ifMatch reads the header (RFC 9110, 13.1.1). given is false without one; any is "*".
func ifMatch(h http.Header) (tags []string, any, given bool, err error) {
	values := h.Values("If-Match")
	if len(values) == 0 {
		return nil, false, false, nil
	}
	list := strings.Trim(strings.Join(values, ","), " \t")
	if list == "*" {
		return nil, true, true, nil
	}
	for list != "" {
		rest := strings.TrimPrefix(list, "W/")
		if len(rest) == 0 || rest[0] != '"' {
			return nil, false, true, errIfMatch
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return nil, false, true, errIfMatch
		}
		if len(rest) == len(list) { // a weak tag never matches here
			tags = append(tags, rest[:end+2])
		}
		list = strings.TrimLeft(rest[end+2:], " \t")
		if list != "" {
			if list[0] != ',' {
				return nil, false, true, errIfMatch
			}
			list = strings.TrimLeft(list, ", \t")
		}
	}
	return tags, false, true, nil
}

// precondition is what a request's If-Match asks for.
type precondition struct {
	tags       []string
	any, given bool
}

// precondition reads If-Match. It has answered when ok is false.
func (a *api) precondition(w http.ResponseWriter, r request) (p precondition, ok bool) {
	var err error
	p.tags, p.any, p.given, err = ifMatch(r.Header)
	if err != nil {
		a.refuse(w, http.StatusBadRequest, problemInvalid, "The request is invalid", err.Error(), withErrors([]*FieldError{{Field: "If-Match", Reason: "is not a list of entity tags"}}))
		return p, false
	}
	return p, true
}

func (p precondition) holds(rec record) bool {
	if !p.given || p.any {
		return true
	}
	for _, tag := range p.tags {
		if tag == rec.etag() {
			return true
		}
	}
	return false
}

// lost is the answer to a request that was made for another state than the one that is there: nothing was done.
func (a *api) lost(w http.ResponseWriter, rec record) {
	if rec.ID != "" {
		w.Header().Set("ETag", rec.etag())
		w.Header().Set("Content-Location", location(rec.ID))
	}
	a.refuse(w, http.StatusPreconditionFailed, problemChanged, "The operation is not in that state",
		"If-Match names another state than the present one, which ETag names; nothing was done", withOperation(rec.ID))
}
