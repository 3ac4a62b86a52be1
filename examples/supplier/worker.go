package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vitrip/journeyman/worker"
)

// Room is the task's input.
type Room struct {
	Hotel string `json:"hotel"`
}

// Reservation is what the hotel answers, and the task's output.
type Reservation struct {
	ID string `json:"reservation"`
}

// reserve is an external handler. Call runs outside any transaction, its result is stored before Settle writes it down.
func reserve(hotel string) worker.Handler {
	return worker.External(worker.Remote[Room, Reservation, Reservation]{
		// Call: c.Key is the same in every attempt. An error that is none of ours means: the result is unknown.
		Call: func(ctx context.Context, c worker.Call[Room]) (Reservation, error) {
			return ask(ctx, http.MethodPost, hotel+"/rooms?key="+url.QueryEscape(c.Key)+"&hotel="+url.QueryEscape(c.In.Hotel))
		},
		// Resolve asks what became of an earlier call whose answer nobody has.
		Resolve: func(ctx context.Context, c worker.Call[Room]) (Reservation, error) {
			return ask(ctx, http.MethodGet, hotel+"/rooms?key="+url.QueryEscape(c.Key))
		},
		// Settle: the row, the recorded outcome and what the engine is told are one fact.
		Settle: func(ctx context.Context, tx *worker.Tx, job worker.Job[Room], r Reservation) (Reservation, error) {
			_, err := tx.Exec(ctx, `INSERT INTO stay (reservation, hotel) VALUES ($1, $2)`, r.ID, job.In.Hotel)
			return r, err
		},
	},
		worker.KeyIgnored(),        // this hotel reserves twice when it is asked twice
		worker.SLA(10*time.Second), // unknown for longer: OUTCOME_UNKNOWN is thrown, the model has a person ask
		worker.Throws("SOLD_OUT"),  // the codes that the model catches
		worker.NotCompensable("an example: the room is kept"),
	)
}

var client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} //nolint:gochecknoglobals // an example

func ask(ctx context.Context, method, url string) (Reservation, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return Reservation{}, worker.Fatal(err) // trying again helps nobody
	}
	resp, err := client.Do(req)
	if err != nil {
		return Reservation{}, err // unknown
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	switch resp.StatusCode {
	case http.StatusOK:
		var r Reservation
		err := json.NewDecoder(resp.Body).Decode(&r)
		return r, err
	case http.StatusNotFound:
		return Reservation{}, worker.ErrNotHappened // Resolve: Call may be repeated
	case http.StatusConflict:
		return Reservation{}, worker.BusinessError("SOLD_OUT", "no room left")
	}
	return Reservation{}, errors.New(strings.ToLower(fmt.Sprintf("the hotel says %s", resp.Status))) // unknown
}
