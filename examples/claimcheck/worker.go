package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/worker"
)

const schema = `CREATE TABLE IF NOT EXISTS document (id text PRIMARY KEY, body text NOT NULL)`

// Claim is what the process carries instead of a document.
type Claim struct {
	ID     string `json:"id"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// store keeps a document under the operation's id: a repeat of the operation is answered from the record and writes nothing.
func store(ctx context.Context, tx *worker.Tx, id, body string) (Claim, error) {
	sum := sha256.Sum256([]byte(body))
	_, err := tx.Exec(ctx, `INSERT INTO document (id, body) VALUES ($1, $2)`, id, body)
	return Claim{ID: id, SHA256: hex.EncodeToString(sum[:]), Bytes: len(body)}, err
}

// redeem gives the document of a claim. One that is gone or differs is a matter for a person: no retry brings it back.
func redeem(ctx context.Context, tx *worker.Tx, c Claim) (string, error) {
	var body string
	err := tx.QueryRow(ctx, `SELECT body FROM document WHERE id = $1`, c.ID).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", worker.Fatal(fmt.Errorf("document %q is gone", c.ID))
	}
	if sum := sha256.Sum256([]byte(body)); err == nil && hex.EncodeToString(sum[:]) != c.SHA256 {
		return "", worker.Fatal(fmt.Errorf("document %q is not the one that was written", c.ID))
	}
	return body, err
}

type order struct {
	Lines int `json:"lines"`
}

type written struct {
	Report Claim `json:"report"`
}

type sent struct {
	Bytes int `json:"bytes"`
}

// writing makes the report. The document and the claim are one fact: neither is there without the other.
func writing() worker.Handler {
	return worker.Transactional(func(ctx context.Context, tx *worker.Tx, job worker.Job[order]) (written, error) {
		c, err := store(ctx, tx, job.OperationID, strings.Repeat("a line of the report\n", job.In.Lines))
		return written{c}, err
	}, worker.NotCompensable("a report that nobody sends harms nobody"))
}

// sending reads the report by its claim.
func sending(send func(Claim, string)) worker.Handler {
	return worker.Transactional(func(ctx context.Context, tx *worker.Tx, job worker.Job[written]) (sent, error) {
		body, err := redeem(ctx, tx, job.In.Report)
		if err != nil {
			return sent{}, err
		}
		send(job.In.Report, body) // an example: a real one would be an external handler, see examples/supplier
		return sent{len(body)}, nil
	}, worker.NotCompensable("what was sent was sent"))
}

// outgoing counts what was sent, and what the process carried of it.
type outgoing struct{ bytes, carried atomic.Int64 }

func (o *outgoing) send(c Claim, body string) {
	doc, _ := json.Marshal(c) //nolint:errchkjson // strings and a number
	o.bytes.Store(int64(len(body)))
	o.carried.Store(int64(len(doc)))
}
