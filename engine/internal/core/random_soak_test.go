//go:build soak

package core_test

const mostModels = 1 << 30
