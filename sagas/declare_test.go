package sagas_test

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
)

// A catalog without the runtime's own events refuses to start (spec E3).
func TestNew_RefusesACatalogWithoutItsEvents_E3(t *testing.T) {
	t.Parallel()
	cat, err := events.ParseCatalog([]byte("messages: [{type: platform.saga.started, class: saga, owner: platform, producers: [p]}]"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := outbox.NewStager(outbox.Config{Catalog: cat, Producer: "p", Instance: "i", Env: "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sagas.New(sagas.Config{Stager: s})
	if err == nil || !strings.Contains(err.Error(), "platform.saga.completed: not in the catalog") || strings.Contains(err.Error(), "platform.saga.started") {
		t.Errorf("got %v, want it to name the types that are missing", err)
	}
	own, err := events.ParseCatalog(sagas.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range sagas.Events() {
		if _, ok := own.Entry(typ, 1); !ok {
			t.Errorf("%s is not in the package's own catalog", typ)
		}
	}
}
