package feel

// rangeTable holds the functions of Allen's interval algebra. A point is a
// range of one value.
var rangeTable = []tableRow{
	{"before(a: *, b: *)", relation("before", func(m *machine, a, b *rangeValue) Value {
		return m.any(m.compare("<", a.to, b.from), m.both(m.compare("=", a.to, b.from), BoolValue(!a.toClosed || !b.fromClosed)))
	})},
	{"after(a: *, b: *)", relation("after", func(m *machine, a, b *rangeValue) Value {
		return m.any(m.compare(">", a.from, b.to), m.both(m.compare("=", a.from, b.to), BoolValue(!a.fromClosed || !b.toClosed)))
	})},
	{"meets(range1: r, range2: r)", relation("meets", meets)},
	{"met by(range1: r, range2: r)", relation("met by", func(m *machine, a, b *rangeValue) Value { return meets(m, b, a) })},
	{"overlaps(range1: r, range2: r)", relation("overlaps", func(m *machine, a, b *rangeValue) Value {
		return m.both(m.reaches(a, b), m.reaches(b, a))
	})},
	{"overlaps before(range1: r, range2: r)", relation("overlaps before", overlapsBefore)},
	{"overlaps after(range1: r, range2: r)", relation("overlaps after", func(m *machine, a, b *rangeValue) Value { return overlapsBefore(m, b, a) })},
	{"finishes(a: *, range: r)", relation("finishes", finishes)},
	{"finished by(range: r, a: *)", relation("finished by", func(m *machine, a, b *rangeValue) Value { return finishes(m, b, a) })},
	{"includes(range: r, a: *)", relation("includes", includes)},
	{"during(a: *, range: r)", relation("during", func(m *machine, a, b *rangeValue) Value { return includes(m, b, a) })},
	{"starts(a: *, range: r)", relation("starts", starts)},
	{"started by(range: r, a: *)", relation("started by", func(m *machine, a, b *rangeValue) Value { return starts(m, b, a) })},
	{"coincides(a: *, b: *)", relation("coincides", func(m *machine, a, b *rangeValue) Value {
		return m.both(m.both(m.compare("=", a.from, b.from), m.compare("=", a.to, b.to)), BoolValue(a.fromClosed == b.fromClosed && a.toClosed == b.toClosed))
	})},
}

func relation(name string, fn func(m *machine, a, b *rangeValue) Value) func(*machine, []Value) Value {
	return func(m *machine, args []Value) Value {
		for _, v := range args {
			if v.IsNull() {
				return m.fail(name, "expected a range or a point but found 'null'")
			}
		}
		return fn(m, span(args[0]), span(args[1]))
	}
}

func span(v Value) *rangeValue {
	if r, ok := v.v.(*rangeValue); ok {
		return r
	}
	return &rangeValue{v, v, true, true}
}

// both and any are three-valued.
func (m *machine) both(a, b Value) Value {
	x, ok1 := a.Bool()
	y, ok2 := b.Bool()
	switch {
	case ok1 && !x || ok2 && !y:
		return BoolValue(false)
	case !ok1 || !ok2:
		return Value{}
	}
	return BoolValue(true)
}

func (m *machine) any(a, b Value) Value {
	x, ok1 := a.Bool()
	y, ok2 := b.Bool()
	switch {
	case x || y:
		return BoolValue(true)
	case !ok1 || !ok2:
		return Value{}
	}
	return BoolValue(false)
}

func meets(m *machine, a, b *rangeValue) Value {
	return m.both(m.compare("=", a.to, b.from), BoolValue(a.toClosed && b.fromClosed))
}

// reaches says whether a ends at or after the start of b, sharing a point.
func (m *machine) reaches(a, b *rangeValue) Value {
	return m.any(m.compare(">", a.to, b.from), m.both(m.compare("=", a.to, b.from), BoolValue(a.toClosed && b.fromClosed)))
}

// startsFirst says whether a starts before b.
func (m *machine) startsFirst(a, b *rangeValue) Value {
	return m.any(m.compare("<", a.from, b.from), m.both(m.compare("=", a.from, b.from), BoolValue(a.fromClosed && !b.fromClosed)))
}

// endsFirst says whether a ends before b.
func (m *machine) endsFirst(a, b *rangeValue) Value {
	return m.any(m.compare("<", a.to, b.to), m.both(m.compare("=", a.to, b.to), BoolValue(!a.toClosed && b.toClosed)))
}

func overlapsBefore(m *machine, a, b *rangeValue) Value {
	return m.both(m.both(m.startsFirst(a, b), m.reaches(a, b)), m.not(m.endsFirst(b, a)))
}

func (m *machine) not(v Value) Value {
	if b, ok := v.Bool(); ok {
		return BoolValue(!b)
	}
	return Value{}
}

func finishes(m *machine, a, b *rangeValue) Value {
	same := m.both(m.compare("=", a.to, b.to), BoolValue(a.toClosed == b.toClosed))
	return m.both(same, m.not(m.startsFirst(a, b)))
}

func starts(m *machine, a, b *rangeValue) Value {
	same := m.both(m.compare("=", a.from, b.from), BoolValue(a.fromClosed == b.fromClosed))
	return m.both(same, m.not(m.endsFirst(b, a)))
}

func includes(m *machine, a, b *rangeValue) Value {
	return m.both(m.not(m.startsFirst(b, a)), m.not(m.endsFirst(a, b)))
}
