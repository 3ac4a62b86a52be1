package console

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// CheckListen refuses an address to listen on that is not loopback: "127.0.0.1:8081", "[::1]:8081" and "localhost:8081"
// pass; ":8081" means every interface and does not. It looks at the text only and resolves no names.
func CheckListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("console address %q: want host:port: %w", address, err)
	}
	if !loopback(host) {
		return fmt.Errorf("console address %q: nobody signs in to an open console, so it listens on this machine only: want 127.0.0.1, ::1 or localhost", address)
	}
	return nil
}

// loopbackHost judges a request's Host header, with or without port.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return loopback(name)
	}
	return loopback(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}
