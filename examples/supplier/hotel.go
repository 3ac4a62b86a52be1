package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
)

// hotel is the other system: it acts, and loses its first answers on the way back.
type hotel struct {
	*httptest.Server

	mu    sync.Mutex
	rooms map[string][]Reservation // by key; more than one = reserved twice
	lose  int64
}

func openHotel(lose int64) *hotel {
	h := &hotel{rooms: map[string][]Reservation{}, lose: lose}
	h.Server = httptest.NewServer(h)
	return h
}

// ServeHTTP reserves on POST /rooms?key=K, and tells on GET what was reserved under the key.
func (h *hotel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := r.URL.Query().Get("key")
	if r.Method == http.MethodPost {
		h.rooms[key] = append(h.rooms[key], Reservation{ID: fmt.Sprintf("R-%d", len(h.rooms[key])+1)})
		if h.lose > 0 {
			h.lose--
			panic(http.ErrAbortHandler) // cuts the connection
		}
	}
	found := h.rooms[key]
	if len(found) == 0 {
		http.Error(w, "nothing under this key", http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(found[0])
}

func (h *hotel) reservations() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.rooms {
		n += len(all)
	}
	return n
}
