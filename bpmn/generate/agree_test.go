package generate_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/export"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/reservation"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// noSagas stands for *sagas.Sagas: nothing runs here.
type noSagas struct{}

var errNotRun = errors.New("not run in this test")

func (noSagas) Decide(context.Context, *outbox.Tx, string, sagas.Decision) error { return errNotRun }

func (noSagas) StartTx(context.Context, *outbox.Tx, sagas.StartRequest) (string, error) {
	return "", errNotRun
}

// noObjects stands for an object storage: nothing runs here.
type noObjects struct{}

func (noObjects) Put(context.Context, string, []byte) error { return errNotRun }
func (noObjects) Delete(context.Context, string) error      { return errNotRun }

func exports(t *testing.T) *export.Exports {
	t.Helper()
	var catalogs []*events.Catalog
	for _, text := range [][]byte{sagas.Catalog(), tourbooking.Catalog()} {
		c, err := events.ParseCatalog(text)
		if err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, c)
	}
	catalog, err := events.Merge(catalogs...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := export.New(export.Config{
		Pool: new(pgxpool.Pool), Objects: noObjects{}, Sagas: noSagas{}, Catalog: catalog, Datasets: []export.Dataset{export.Operations(), export.Bookings()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// travel is a mux with the handlers of all travel sagas.
func travel(t *testing.T) *worker.Mux {
	t.Helper()
	c, err := supplier.New("http://127.0.0.1:1", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	mux := worker.NewMux()
	err = errors.Join(
		tourbooking.Install(mux, tourbooking.Config{Flight: c, Hotel: c, Transfer: c, Payment: c, Sagas: noSagas{}}),
		refund.Install(mux, refund.Config{Flight: c, Hotel: c, Transfer: c, Payment: c, Sagas: noSagas{}}),
		ticketing.Install(mux, ticketing.Config{Flight: c, Sagas: noSagas{}, CallbackURL: "http://127.0.0.1:1/callback", CallbackSecret: []byte("0123456789abcdef")}),
		amendment.Install(mux, amendment.Config{Hotel: c, Transfer: c, Payment: c, Sagas: noSagas{}}),
		reservation.Install(mux, reservation.Config{Flight: c, Hotel: c, Transfer: c, Payment: c, Sagas: noSagas{}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	exports(t).Install(mux)
	return mux
}

// TestModelsAndHandlersAgree holds the shipped models against the shipped handlers (spec B6): every job type of a model has a
// handler, and every code that one side names is known to the other.
func TestModelsAndHandlersAgree(t *testing.T) {
	t.Parallel()
	mux := travel(t)
	if err := errors.Join(
		tourbooking.CheckTourBooking(mux), refund.CheckRefund(mux), ticketing.CheckTicketing(mux),
		amendment.CheckAmendment(mux), reservation.CheckReservation(mux), export.CheckDataExport(mux),
	); err != nil {
		t.Error(err)
	}
	for _, c := range slices.Concat(
		tourbooking.TourBookingCodes(), refund.RefundCodes(), ticketing.TicketingCodes(),
		amendment.AmendmentCodes(), reservation.ReservationCodes(), export.DataExportCodes(),
	) {
		if !slices.Contains(mux.Types(), c.JobType) {
			t.Errorf("element %q: no handler for job type %q", c.Element, c.JobType)
		}
		if perSecond, cost := mux.Expected(c.JobType); perSecond <= 0 || cost <= 0 { // spec W10
			t.Errorf("job type %q: the handler declares no throughput with Expect", c.JobType)
		}
	}
}

// A code that only the model knows, and one that only the handler knows, each fail the check (spec B6).
func TestModelsAndHandlersAgree_not(t *testing.T) {
	t.Parallel()
	mux := travel(t)
	for _, tt := range []struct {
		codes worker.ModelCodes
		want  string
	}{
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay, Boundary: []string{refund.CodeRefundRefused, "LOST"}, Any: true}, "the model catches LOST, which the handler does not declare"},
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay}, "the handler throws REFUND_REFUSED, which nothing in the model catches"},
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay, Throws: []string{}, Any: true}, "which the model does not declare in journeyman:errors"},
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay, Throws: []string{refund.CodeRefundRefused, "LOST"}, Any: true}, "the model declares LOST in journeyman:errors, the handler does not throw it"},
	} {
		if err := mux.CheckCodes("refund.bpmn", []worker.ModelCodes{tt.codes}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %s", tt.codes, err, tt.want)
		}
	}
}

// TestModelsAndHandlersAgree_all: every shipped model has a generated check, and TestModelsAndHandlersAgree calls each of them.
func TestModelsAndHandlersAgree_all(t *testing.T) {
	t.Parallel()
	checks := map[string]string{} // model file → package.CheckMODEL
	paths, err := filepath.Glob("../../sagas/*/*_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Check") {
				continue
			}
			for _, model := range texts(fn) {
				checks[model] = f.Name.Name + "." + fn.Name.Name
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(checks)), slices.Sorted(slices.Values(models.Names())); !slices.Equal(got, want) {
		t.Errorf("generated checks are for %v, shipped are %v", got, want)
	}
	here, err := parser.ParseFile(token.NewFileSet(), "agree_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, d := range here.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "TestModelsAndHandlersAgree" {
			called = calls(fn)
		}
	}
	for model, name := range checks {
		if !called[name] {
			t.Errorf("%s: TestModelsAndHandlersAgree does not call %s", model, name)
		}
	}
}

// texts are the string literals of a function.
func texts(fn *ast.FuncDecl) (all []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

// calls are the functions of other packages that a function calls, as package.Name.
func calls(fn *ast.FuncDecl) map[string]bool {
	all := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if sel, ok := c.Fun.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok {
					all[pkg.Name+"."+sel.Sel.Name] = true
				}
			}
		}
		return true
	})
	return all
}
