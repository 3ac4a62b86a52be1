package postgres

// ProvideFrom is Provide on a machine with other usual places.
var ProvideFrom = provide //nolint:gochecknoglobals // for tests
