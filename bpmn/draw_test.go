package bpmn_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Goldens are without the style sheet, so that a colour is not a diff of every file.
func TestDraw_golden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		golden, model string
		opts          bpmn.DrawOptions
	}{
		{"f2.svg", "field-cases/f2-bizagi-nested-ns-definition.bpmn", bpmn.DrawOptions{}},
		{"f4.svg", "field-cases/f4-compensation-handlers.bpmn", bpmn.DrawOptions{
			Title: "Saga 4711",
			State: map[string]bpmn.State{"start": bpmn.StateCompleted, "f1_f4_comp": bpmn.StateCompleted, "book": bpmn.StateCompensated, "cancel": bpmn.StateIncident, "pay": bpmn.StateTerminated, "undo_all": bpmn.StateActive, "gone": bpmn.StateActive},
			Link: func(id string) string {
				if id == "cancel" {
					return "/incidents?a=1&b=2"
				}
				return ""
			},
		}},
		{"all.svg", "all.bpmn", bpmn.DrawOptions{}},
		{"reserva.svg", "sistema-reservas-viaje/subproceso-reserva.bpmn", bpmn.DrawOptions{}},
		{"hawk.svg", "Compensation-Example-Camunda8/Hawk_Adoption__Compensation_Example_.bpmn", bpmn.DrawOptions{}},
	} {
		t.Run(c.golden, func(t *testing.T) {
			t.Parallel()
			c.opts.NoStyle = true
			var b bytes.Buffer
			if err := bpmn.Draw(&b, parse(t, read(t, c.model)), c.opts); err != nil {
				t.Fatal(err)
			}
			wellFormed(t, b.String())
			path := filepath.Join("testdata", "golden", c.golden)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("picture changed (go test ./bpmn -run Draw -update, then look at it):\n%s", diff)
			}
		})
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the picture is not well-formed: %v", err)
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "script" {
			t.Fatal("the picture holds a script")
		}
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
				t.Fatalf("the picture holds the attribute %s", a.Name.Local)
			}
		}
	}
}

func TestDraw_showsWhatMatters(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := bpmn.Draw(&b, parse(t, read(t, "field-cases/f4-compensation-handlers.bpmn")), bpmn.DrawOptions{State: map[string]bpmn.State{"pay": bpmn.StateIncident}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<style>`, `prefers-color-scheme:dark`, `<g class="bpmn-el association" data-element="as1">`, `bpmn-flow bpmn-dashed`,
		`<title>pay (service task, f4.pay): incident</title>`, `is-incident`, `<title>cancel (service task, f4.cancel, compensation handler)</title>`,
		`<title>book_comp (compensate boundary event)</title>`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
}

func TestDraw_escapes(t *testing.T) {
	t.Parallel()
	evil := `&lt;script&gt;alert(1)&lt;/script&gt; &#34;x&#34;`
	model := strings.ReplaceAll(read(t, "field-cases/f4-compensation-handlers.bpmn"), `name="book"`, `name="`+evil+`"`)
	var b strings.Builder
	err := bpmn.Draw(&b, parse(t, model), bpmn.DrawOptions{Title: `"><script>`, Link: func(string) string { return `"><script>` }})
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if strings.Contains(b.String(), "<script") {
		t.Error("a name became markup")
	}
}

func TestDraw_refuses(t *testing.T) {
	t.Parallel()
	if err := bpmn.Draw(io.Discard, parse(t, `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p"/></definitions>`), bpmn.DrawOptions{}); !errors.Is(err, bpmn.ErrNothingToDraw) {
		t.Errorf("got %v, want ErrNothingToDraw", err)
	}
	err := bpmn.Draw(io.Discard, parse(t, read(t, "field-cases/f4-compensation-handlers.bpmn")), bpmn.DrawOptions{State: map[string]bpmn.State{"pay": "burning"}})
	if err == nil || !strings.Contains(err.Error(), `unknown state "burning"`) {
		t.Errorf("got %v, want the unknown state named", err)
	}
}
