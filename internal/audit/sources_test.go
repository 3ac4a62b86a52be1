package audit_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestWitness(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE SCHEMA app; CREATE TABLE app.box (id uuid, bk text, seq bigint)`)
	if err := audit.InstallWitness(ctx, pool, audit.Outbox{Table: "app.box", ID: "id", BusinessKey: "bk", Order: "seq"}); err != nil {
		t.Fatal(err)
	}
	exec(`INSERT INTO app.box VALUES ('00000000-0000-4000-8000-000000000001', 'k', 1)`)
	exec(`DELETE FROM app.box`)
	exec(`BEGIN; INSERT INTO app.box VALUES ('00000000-0000-4000-8000-000000000002', 'k', 2); ROLLBACK`)
	got, err := audit.ReadWitness(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	want := []audit.Staged{{ID: "00000000-0000-4000-8000-000000000001", Key: "k", Sequence: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("witness (-want +got):\n%s", diff)
	}
}

func TestLog_Read(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "tour.booking.confirmed.v1", "platform.dlq.v1"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	log := audit.Log{Brokers: cluster.ListenAddrs(), Skip: func(topic string) bool { return topic == "platform.dlq.v1" }}
	produce := func(topic, key, id, body string) {
		t.Helper()
		client := &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...), Timeout: 10 * time.Second}
		res, err := client.Produce(ctx, &kafka.ProduceRequest{
			Topic: topic, Partition: 1, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{
				Key: kafka.NewBytes([]byte(key)), Value: kafka.NewBytes([]byte(body)),
				Headers: []kafka.Header{{Key: "event_id", Value: []byte(id)}},
			}),
		})
		if err != nil || res.Error != nil {
			t.Fatal(err, res)
		}
	}
	body := `{"messageId":"m1","messageType":"tour.booking.confirmed","metadata":{"businessKey":"acme:A","sequence":4}}`
	produce("tour.booking.confirmed.v1", "acme:A", "m1", body)
	produce("tour.booking.confirmed.v1", "acme:A", "m1", body)
	produce("platform.dlq.v1", "x", "x", "not read")
	got, err := log.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rec := audit.Record{Topic: "tour.booking.confirmed.v1", Partition: 1, ID: "m1", Key: "acme:A", Sequence: 4, Type: "tour.booking.confirmed"}
	again := rec
	again.Offset = 1
	if diff := cmp.Diff([]audit.Record{rec, again}, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	produce("tour.booking.confirmed.v1", "acme:B", "m1", body)
	if _, err := log.Read(ctx); err == nil {
		t.Error("a record whose key differs from its envelope was taken")
	}
}

// TestEngine_Read plays a REST API that gives two items at most per page.
func TestEngine_Read(t *testing.T) {
	t.Parallel()
	data := map[string][]string{
		"process-instances": {
			`{"processInstanceKey":"10","processDefinitionId":"tour-booking","state":"COMPLETED"}`,
			`{"processInstanceKey":"11","processDefinitionId":"refund","state":"ACTIVE"}`,
			`{"processInstanceKey":"12","processDefinitionId":"refund","state":"TERMINATED"}`,
		},
		"variables": {`{"scopeKey":"21","value":"\"op_a:flightReserve:flight\""}`, `{"scopeKey":"10","value":"\"op_a\""}`},
		"element-instances": {
			`{"elementInstanceKey":"21","elementId":"flightReserve","state":"TERMINATED"}`,
			`{"elementInstanceKey":"22","elementId":"fork","state":"COMPLETED"}`,
		},
		"incidents": {`{}`},
		"jobs":      {`{}`, `{}`, `{}`, `{}`},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/{what}/search", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Page struct{ From, Limit int } }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		all := data[r.PathValue("what")]
		items := []json.RawMessage{}
		for _, s := range all[min(q.Page.From, len(all)):min(q.Page.From+min(q.Page.Limit, 2), len(all))] {
			items = append(items, json.RawMessage(s))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "page": map[string]any{"totalItems": len(all)}})
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	got, err := audit.Engine{Address: server.URL}.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := audit.History{
		Instances: []audit.Instance{{10, "tour-booking", "COMPLETED"}, {11, "refund", "ACTIVE"}, {12, "refund", "TERMINATED"}},
		Elements:  []audit.Element{{21, "flightReserve", "op_a:flightReserve:flight", "TERMINATED"}},
		Incidents: 1, Jobs: 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	data["jobs"] = slices.Repeat(data["jobs"], 2)
	server.Close()
	if _, err := (audit.Engine{Address: server.URL}).Read(context.Background()); err == nil {
		t.Error("a dead engine gave no error")
	}
}
