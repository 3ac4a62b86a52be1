package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// printer writes one file.
type printer struct {
	unit *unit
	from []*model // named in the head
	b    strings.Builder
	uses map[string]bool // import paths
}

func (p *printer) f(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func (p *printer) use(path string) {
	if p.uses == nil {
		p.uses = map[string]bool{}
	}
	p.uses[path] = true
}

// imports lists the import paths, the standard library first.
func (p *printer) imports() []string {
	all := slices.Collect(maps.Keys(p.uses))
	slices.SortFunc(all, func(a, b string) int {
		if x, y := strings.Contains(a, "."), strings.Contains(b, "."); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	return all
}

const workerPath = "github.com/vitrip/journeyman/worker"

// comment prints a doc comment from lines of any content.
func (p *printer) comment(text string) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.Map(func(r rune) rune {
			if r < ' ' || r == '\u2028' || r == '\u2029' {
				return ' '
			}
			return r
		}, line)
		p.f("// %s\n", strings.TrimSpace(line))
	}
}

// constant prints one constant and keeps its name.
func (p *printer) constant(name, value, note string) {
	name = p.unit.names.take(name, fmt.Sprintf("%q", value))
	p.f("\t%s = %q", name, value)
	if note != "" {
		p.f(" // %s", strings.Map(func(r rune) rune {
			if r < ' ' {
				return ' '
			}
			return r
		}, note))
	}
	p.f("\n")
}

// shared prints the file that all models of the package have in common.
func (p *printer) shared() {
	u := p.unit
	p.comment("Process ids.")
	p.f("const (\n")
	var processes []string
	for _, m := range u.models {
		processes = append(processes, m.processes...)
	}
	slices.Sort(processes)
	for _, id := range slices.Compact(processes) {
		p.constant("Process"+goName(id), id, "")
	}
	p.f(")\n\n")
	if types := u.types(func(*job) bool { return true }); len(types) > 0 {
		p.comment("Job types.")
		p.f("const (\n")
		for _, t := range types {
			j := u.jobs[t]
			note := few(j.places)
			if len(j.undoes) > 0 {
				note = strings.TrimPrefix(note+"; ", "; ") + "undoes " + strings.Join(j.undoes, ", ")
			}
			p.constant("Job"+j.goName, t, note)
		}
		p.f(")\n\n")
	}
	if len(u.codes) > 0 {
		p.comment("Error codes that models catch or throw.")
		p.f("const (\n")
		for _, name := range slices.Sorted(maps.Keys(u.codes)) {
			c := u.codes[name]
			var notes []string
			if len(c.caught) > 0 {
				notes = append(notes, "caught at "+few(c.caught))
			}
			if len(c.thrown) > 0 {
				notes = append(notes, "thrown at "+few(c.thrown))
			}
			p.constant("Code"+goName(name), name, strings.Join(notes, "; "))
		}
		p.f(")\n\n")
	}
	if len(u.messages) > 0 {
		p.comment("Message names.")
		p.f("const (\n")
		for _, name := range slices.Sorted(maps.Keys(u.messages)) {
			p.constant("Message"+goName(name), name, u.messages[name])
		}
		p.f(")\n\n")
	}
	common := u.types(func(j *job) bool { return len(j.models) > 1 && u.serves(j) })
	if len(common) > 0 {
		p.handlers("Shared", "the job types that more than one model uses", common)
	}
}

// serves says whether this package has a handler for a job type.
func (u *unit) serves(j *job) bool {
	return !u.foreign(j.jobType) && len(j.undoes) == 0 && len(j.models) > 0
}

func (u *unit) types(want func(*job) bool) []string {
	var out []string
	for _, t := range slices.Sorted(maps.Keys(u.jobs)) {
		if want(u.jobs[t]) {
			out = append(out, t)
		}
	}
	return out
}

// few lists the first of many.
func few(places []string) string {
	places = slices.Compact(slices.Clone(places))
	if len(places) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(places[:3], ", "), len(places)-3)
	}
	return strings.Join(places, ", ")
}

// model prints one model's file.
func (p *printer) model(m *model) {
	if len(m.elements) > 0 {
		p.comment("Element ids of " + m.file + ".")
		p.f("const (\n")
		for _, e := range m.elements {
			if e.ID != "" {
				p.constant("Element"+m.goName+goName(e.ID), e.ID, strings.Join(strings.Fields(e.Name), " "))
			}
		}
		p.f(")\n\n")
	}
	if len(m.notes) > 0 {
		p.f("// Not generated:\n//\n")
		for _, n := range m.notes {
			p.f("//\t%s\n", n)
		}
		p.f("\n")
	}
	own := p.unit.types(func(j *job) bool { return len(j.models) == 1 && j.models[0] == m.file && p.unit.serves(j) })
	if len(own) > 0 {
		p.handlers(m.goName, "the job types of "+m.file, own)
	}
	if len(m.codes) > 0 {
		p.codes(m)
	}
}

// handlers prints an interface with one method per job type, its registration and the types it speaks of.
func (p *printer) handlers(name, what string, types []string) {
	u := p.unit
	p.use(workerPath)
	p.comment(fmt.Sprintf("%s serves %s.", u.names.take(name+"Handlers", "the handlers of "+name), what))
	p.f("type %sHandlers interface {\n", name)
	for _, t := range types {
		p.f("\t// %s serves %q.\n\t%s() %sHandler\n", u.jobs[t].goName, t, u.jobs[t].goName, u.jobs[t].goName)
	}
	p.f("}\n\n")
	p.comment(fmt.Sprintf("%s registers every handler of h. worker.New reports what is wrong with them.", u.names.take("Register"+name, "the registration of "+name)))
	p.f("func Register%s(mux *worker.Mux, h %sHandlers) {\n", name, name)
	for _, t := range types {
		p.f("\tmux.Handle(Job%s, h.%s().handler)\n", u.jobs[t].goName, u.jobs[t].goName)
	}
	p.f("}\n\n")
	for _, t := range types {
		p.job(u.jobs[t])
	}
}

// job prints the types and constructors of one job type.
func (p *printer) job(j *job) {
	u, g := p.unit, j.goName
	for _, suffix := range []string{"In", "Out", "Handler", "Tx", "External", "Undo", "UndoTx"} {
		u.names.take(g+suffix, fmt.Sprintf("%s of job type %q", suffix, j.jobType))
	}
	p.structs(g+"In", fmt.Sprintf("%sIn is the input of %q.", g, j.jobType), j.in)
	p.structs(g+"Out", fmt.Sprintf("%sOut is the output of %q: what the model's output mappings read.", g, j.jobType), j.out)
	p.f("// %sHandler serves %q. Make one with %sTx or %sExternal.\ntype %sHandler struct{ handler worker.Handler }\n\n// Handler gives the handler itself, for tests.\nfunc (h %sHandler) Handler() worker.Handler { return h.handler }\n\n", g, j.jobType, g, g, g, g)
	opts, note := "opts", ""
	if len(j.throws) > 0 {
		var codes []string
		for _, c := range j.throws {
			codes = append(codes, "Code"+goName(c))
		}
		opts = fmt.Sprintf("append([]worker.Option{worker.Throws(%s)}, opts...)", strings.Join(codes, ", "))
		note = "\n// It may throw the codes that the model declares."
	}
	p.f("// %sTx makes a handler that does everything inside its transaction.%s\nfunc %sTx(f worker.Func[%sIn, %sOut], opts ...worker.Option) %sHandler {\n\treturn %sHandler{worker.Transactional(f, %s...)}\n}\n\n", g, note, g, g, g, g, g, opts)
	p.f("// %sExternal makes a handler that calls another system outside any transaction.%s\nfunc %sExternal[Res any](r worker.Remote[%sIn, Res, %sOut], opts ...worker.Option) %sHandler {\n\treturn %sHandler{worker.External(r, %s...)}\n}\n\n", g, note, g, g, g, g, g, opts)
	if j.undo == "" || u.foreign(j.undo) {
		return
	}
	p.use("context")
	undo := "Job" + goName(j.undo)
	p.f("// %sUndo declares the compensation %q, which calls another system. Res is the forward handler's result of Call, or %sOut.\nfunc %sUndo[Res any](r worker.RemoteUndo[%sIn, Res]) worker.Option {\n\treturn worker.CompensatedBy(%s, r)\n}\n\n", g, j.undo, g, g, g, undo)
	p.f("// %sUndoTx declares the compensation %q, which is done inside its transaction.\nfunc %sUndoTx[Res any](f func(ctx context.Context, tx *worker.Tx, u worker.UndoOf[%sIn, Res]) error) worker.Option {\n\treturn worker.CompensatedByTx(%s, f)\n}\n\n", g, j.undo, g, g, undo)
}

// structs prints a struct and those of its fields.
func (p *printer) structs(name, doc string, s *shape) {
	type inner struct {
		name, doc string
		s         *shape
	}
	var later []inner
	var goType func(field string, s *shape) string
	goType = func(field string, s *shape) string {
		switch {
		case s == nil || s.kind == unknown || s.kind == raw:
			p.use("encoding/json")
			return "json.RawMessage"
		case s.kind == list:
			return "[]" + goType(field, s.item)
		case s.kind == object:
			t := p.unit.names.take(name+goName(field), "field "+field+" of "+name)
			later = append(later, inner{t, fmt.Sprintf("%s is the field %q of [%s].", t, field, name), s})
			return t
		case s.kind == instant:
			p.use("time")
			return "time.Time"
		}
		return map[kind]string{text: "string", integer: "int64", number: "float64", boolean: "bool"}[s.kind]
	}
	p.comment(doc)
	p.f("type %s struct {\n", name)
	seen := map[string]string{}
	for _, field := range slices.Sorted(maps.Keys(s.fields)) {
		g := goName(field)
		if other, ok := seen[g]; ok {
			p.unit.names.errs = append(p.unit.names.errs, fmt.Errorf("fields %q and %q of %s would both be %s in Go: rename one", other, field, name, g))
		}
		seen[g] = field
		f := s.fields[field]
		t, tag := goType(field, f), field
		if f != nil && f.optional {
			tag += ",omitempty"
			if !strings.HasPrefix(t, "[]") && t != "json.RawMessage" {
				t = "*" + t
			}
		}
		if f.empty() {
			p.f("\t// The model does not tell the type of %s: say it with a property or an example.\n", g)
		}
		p.f("\t%s %s `json:%q`\n", g, t, tag)
	}
	p.f("}\n\n")
	for _, in := range later {
		p.structs(in.name, in.doc, in.s)
	}
}

// codes prints what the model does with the error codes of its handlers.
func (p *printer) codes(m *model) {
	p.use(workerPath)
	p.comment(fmt.Sprintf("%s lists what %s does with the error codes of each task's handler.", p.unit.names.take(m.goName+"Codes", "the codes of "+m.file), m.file))
	p.f("func %sCodes() []worker.ModelCodes {\n\treturn []worker.ModelCodes{\n", m.goName)
	for _, k := range m.codes {
		p.f("\t\t{Element: %q, JobType: Job%s", k.element, goName(k.jobType))
		p.list("Boundary", k.boundary)
		p.list("Scope", k.scope)
		if throws := p.unit.jobs[k.jobType].throws; len(throws) > 0 {
			p.list("Throws", throws)
		}
		if k.any {
			p.f(", Any: true")
		}
		p.f("},\n")
	}
	p.f("\t}\n}\n\n")
	p.comment(fmt.Sprintf("%s reports codes that a handler of mux throws and %s does not catch, and codes that the model catches and no handler throws. Call it in a test.", p.unit.names.take("Check"+m.goName, "the check of "+m.file), m.file))
	p.f("func Check%s(mux *worker.Mux) error { return mux.CheckCodes(%q, %sCodes()) }\n", m.goName, m.file, m.goName)
}

func (p *printer) list(field string, codes []string) {
	if len(codes) == 0 {
		return
	}
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = "Code" + goName(c)
	}
	p.f(", %s: []string{%s}", field, strings.Join(names, ", "))
}
