//go:build !soak

package core_test

// mostModels bounds how many models a run in tier check plays; tier soak plays as many as -rapid.checks says.
const mostModels = 12
