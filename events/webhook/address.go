package webhook

import (
	"fmt"
	"net/netip"
)

// inside are ranges that are not the public internet, beyond what package netip names (IANA special-purpose registries).
var inside = []netip.Prefix{ //nolint:gochecknoglobals // constant table
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // carrier-grade NAT; clouds use it inside
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, broadcast
	netip.MustParsePrefix("64:ff9b:1::/48"),  // local translation
	netip.MustParsePrefix("100::/64"),        // discard
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, Teredo with them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation
	netip.MustParsePrefix("5f00::/16"),       // segment routing
	netip.MustParsePrefix("fec0::/10"),       // site-local, deprecated
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") //nolint:gochecknoglobals // constant
	sixTo4 = netip.MustParsePrefix("2002::/16")    //nolint:gochecknoglobals // constant
	global = netip.MustParsePrefix("2000::/3")     //nolint:gochecknoglobals // constant
)

// PublicOnly refuses every address that is not one of the public internet: loopback, private, link-local (where clouds keep
// credentials), shared, multicast, reserved, and IPv6 addresses that hold such an IPv4 address. Port 443 and ports from 1024
// on pass: the low ones are other services'. It is pure, and meant for the moment of dialling.
func PublicOnly(to netip.AddrPort) error {
	if port := to.Port(); port != 443 && port < 1024 {
		return fmt.Errorf("port %d is not one that webhooks are sent to", port)
	}
	if to.Addr().Zone() != "" {
		return fmt.Errorf("address %s is not public", to.Addr())
	}
	return publicAddress(to.Addr().Unmap())
}

func publicAddress(a netip.Addr) error {
	refuse := fmt.Errorf("address %s is not public", a)
	switch {
	case !a.IsValid(), a.IsUnspecified(), a.IsLoopback(), a.IsPrivate(), a.IsLinkLocalUnicast(), a.IsMulticast():
		return refuse
	}
	for _, p := range inside {
		if p.Contains(a) {
			return refuse
		}
	}
	if a.Is4() {
		return nil
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return publicAddress(netip.AddrFrom4([4]byte(b[12:16])))
	case sixTo4.Contains(a):
		return publicAddress(netip.AddrFrom4([4]byte(b[2:6])))
	case !global.Contains(a):
		return refuse
	}
	return nil
}
