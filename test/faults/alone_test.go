//go:build !crowd && !soak

package faults

// asMember says whether the test binary is a process of a fleet: never, without tests that have one.
func asMember() (bool, error) { return false, nil }
