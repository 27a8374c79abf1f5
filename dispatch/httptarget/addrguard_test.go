package httptarget_test

import (
	"net/netip"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

func TestNetworkProfiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ip               string
		internal, public bool
	}{
		{"93.184.216.34", true, true},
		{"2606:2800:220:1:248:1893:25c8:1946", true, true},
		{"127.0.0.1", true, false},
		{"::1", true, false},
		{"1.1.1.1", true, true},
		{"::ffff:1.1.1.1", true, true},
		{"2a00:1450:4001:81b::200e", true, true},
		{"127.255.255.254", true, false},
		{"::ffff:127.0.0.1", true, false},
		{"10.255.255.255", true, false},
		{"172.15.255.255", true, true},
		{"172.31.255.255", true, false},
		{"172.32.0.1", true, true},
		{"::ffff:192.168.1.1", true, false},
		{"100.63.255.255", true, true},
		{"100.127.255.254", true, false},
		{"100.128.0.1", true, true},
		{"fc00::1", true, false},
		{"198.19.255.255", true, false},
		{"198.51.100.7", true, false},
		{"203.0.113.7", true, false},
		{"192.0.0.1", true, false},
		{"192.88.99.1", true, false},
		{"240.0.0.1", true, false},
		{"2001::1", true, false},    // Teredo
		{"2001:10::1", true, false}, // ORCHID
		{"3fff::1", true, false},    // documentation, RFC 9637
		{"100::1", true, false},     // discard-only
		{"fec0::1", true, false},    // site-local
		{"5f00::1", true, false},    // segment routing, RFC 9602
		{"::7f00:1", true, false},   // v4-compatible loopback
		{"::a9fe:a9fe", false, false},
		{"::ffff:0:a9fe:a9fe", false, false},
		{"::ffff:0:7f00:1", true, false},
		{"2002:7f00:1::", true, false},
		{"2002:a00:1::1", true, false},
		{"2002:101:101::1", true, false},
		{"64:ff9b::a00:1", true, false},
		{"64:ff9b::101:101", true, false},
		{"64:ff9b::0.0.0.0", false, false},
		{"::ffff:0.0.0.0", false, false},
		{"0.0.0.1", false, false},
		{"0.255.255.255", false, false},
		{"::ffff:100.100.100.200", false, false},
		{"fd20:ce::254", false, false},
		{"192.0.0.192", false, false},
		{"64:ff9b::6464:64c8", false, false},
		{"febf::1", false, false},
		{"239.255.255.250", false, false},
		{"ff05::1:3", false, false},
		{"10.1.2.3", true, false},
		{"172.16.0.1", true, false},
		{"192.168.1.1", true, false},
		{"100.64.0.1", true, false},
		{"fd12:3456::1", true, false},
		{"198.18.0.1", true, false},
		{"192.0.2.1", true, false},
		{"2001:db8::1", true, false},
		{"169.254.169.254", false, false},
		{"169.254.0.1", false, false},
		{"::ffff:169.254.169.254", false, false},
		{"64:ff9b::a9fe:a9fe", false, false},
		{"64:ff9b:1::a9fe:a9fe", false, false},
		{"2002:a9fe:a9fe::1", false, false},
		{"64:ff9b::7f00:1", true, false},
		{"fe80::1", false, false},
		{"fe80::1%eth0", false, false},
		{"fd00:ec2::254", false, false},
		{"100.100.100.200", false, false},
		{"168.63.129.16", false, false},
		{"0.0.0.0", false, false},
		{"::", false, false},
		{"224.0.0.1", false, false},
		{"ff02::1", false, false},
		{"255.255.255.255", false, false},
	} {
		for profile, want := range map[string]bool{"internal": tt.internal, "public": tt.public} {
			got, err := httptarget.Reachable(bridge.Network{Profile: profile}, tt.ip)
			if err != nil || got != want {
				t.Errorf("profile %s: %s reachable = %v, %v; want %v", profile, tt.ip, got, err, want)
			}
		}
	}
}

func TestAllowedNetworksAreReachable(t *testing.T) {
	t.Parallel()
	allow := bridge.Network{Profile: "public", Allow: []string{"10.0.0.0/8", "fd00::/8", "169.254.170.2/32", "::ffff:172.16.0.0/108", "192.0.2.77/24"}}
	for ip, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.1": true, "192.168.0.1": false,
		"172.16.3.4": true, "::ffff:172.31.0.1": true, "172.32.0.1": true, "192.0.2.1": true,
		"64:ff9b::a00:1": false, "2002:a00:1::1": false, // what is allowed is the address that is dialled
		"fd12::1": true, "169.254.170.2": true, "169.254.169.254": false,
	} {
		if got, err := httptarget.Reachable(allow, ip); err != nil || got != want {
			t.Errorf("%s reachable = %v, %v; want %v", ip, got, err, want)
		}
	}
}

func FuzzPublicIsNeverWiderThanInternal(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add([]byte{169, 254, 169, 254})
	f.Fuzz(func(t *testing.T, b []byte) {
		ip, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		public, _ := httptarget.Reachable(bridge.Network{Profile: "public"}, ip.String())
		internal, _ := httptarget.Reachable(bridge.Network{}, ip.String())
		if public && !internal {
			t.Errorf("%s is public but not internal", ip)
		}
		mapped, _ := httptarget.Reachable(bridge.Network{}, netip.AddrFrom16(ip.As16()).String())
		if mapped != internal {
			t.Errorf("%s and its mapped form differ", ip)
		}
	})
}
