package httptarget

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"

	"github.com/queenbridge/queenbridge/bridge"
)

// errAddress is an address the target's network profile refuses.
var errAddress = errors.New("address not allowed")

// guard decides which addresses a target may reach. It looks at the concrete
// address that is dialled, after DNS, so that no name can lead elsewhere.
type guard struct {
	profile string
	allow   []netip.Prefix
	public  *ssrf.Guardian // nil: profile internal
}

// newGuard reads a target's network settings.
func newGuard(n bridge.Network) (*guard, error) {
	g := &guard{profile: n.Profile}
	for i, text := range n.Allow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("network.allow[%d] must be a CIDR such as 10.0.0.0/8, got %q", i, text)
		}
		g.allow = append(g.allow, unmapped(prefix.Masked()))
	}
	switch n.Profile {
	case "", "internal":
		g.profile = "internal"
	case "public":
		g.public = ssrf.New(ssrf.WithAnyPort())
	default:
		return nil, fmt.Errorf("network.profile must be internal or public, got %q", n.Profile)
	}
	return g, nil
}

// unmapped is a prefix of v4-mapped addresses as one of IPv4: addresses are
// compared unmapped.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// GuardedDial opens connections as a target's network settings allow, for
// Senders that do not speak HTTP themselves. Proxy is not used. The function is
// safe for concurrent use.
func GuardedDial(n bridge.Network) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	n.Proxy = ""
	made, err := newNetwork(n, nil)
	if err != nil {
		return nil, err
	}
	return made.dialer.DialContext, nil
}

// control is a net.Dialer's ControlContext.
func (g *guard) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: network %s", errAddress, network)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", errAddress, address)
	}
	return g.check(at.Addr())
}

// check is nil where the profile lets ip be reached.
func (g *guard) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	for _, prefix := range g.allow {
		if prefix.Contains(ip) {
			return nil
		}
	}
	refused := classifyAddr(ip) != addrOrdinary
	if g.public != nil {
		refused = refused || g.public.SafeAddr(ip) != nil
	}
	if refused {
		return fmt.Errorf("%w: %s (network.profile %s)", errAddress, ip, g.profile)
	}
	return nil
}

// addrClass is what an address is to the internal profile.
type addrClass int8

const (
	addrOrdinary addrClass = iota
	addrLinkLocal
	addrMetadata
	addrNowhere // unspecified, multicast, broadcast
)

// metadata are the addresses of cloud metadata services outside the
// link-local ranges: AWS over IPv6, Alibaba, Oracle, Azure's wire server.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
}

// classifyAddr looks at an address, and at the IPv4 address inside a
// translated one (NAT64, 6to4, and the forms that are no longer used).
func classifyAddr(ip netip.Addr) addrClass {
	ip = ip.Unmap()
	if inner, ok := embedded(ip); ok {
		if class := classifyAddr(inner); class != addrOrdinary {
			return class
		}
	}
	for _, m := range metadata {
		if ip == m {
			return addrMetadata
		}
	}
	switch {
	case ip.IsLinkLocalUnicast():
		return addrLinkLocal
	case !ip.IsValid(), ip.IsUnspecified(), ip.IsMulticast(), thisNetwork.Contains(ip), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return addrNowhere
	}
	return addrOrdinary
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215; its last 32 bits, as commonly used
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291 §2.5.5.1, deprecated
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765, obsolete
	// thisNetwork is RFC 1122 §3.2.1.3's: some systems take all of it for
	// themselves.
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
)

// embedded is the IPv4 address a translator would send to.
func embedded(ip netip.Addr) (netip.Addr, bool) {
	b := ip.As16()
	switch {
	case !ip.Is6(), ip.IsLoopback(), ip.IsUnspecified():
		return netip.Addr{}, false
	case nat64.Contains(ip), nat64Local.Contains(ip), compatible.Contains(ip), translated.Contains(ip):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(ip):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
