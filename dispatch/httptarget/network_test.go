package httptarget_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// names is a name server: every name has the addresses of the moment.
type names struct {
	addrs atomic.Pointer[[]netip.Addr]
	asked atomic.Int32
}

func (n *names) are(addrs ...string) {
	list := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		list[i] = netip.MustParseAddr(a)
	}
	n.addrs.Store(&list)
}

// resolver starts the server.
func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve(conn)
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		n.asked.Add(1)
		m.Response, m.Additionals = true, nil
		q := m.Questions[0]
		for _, a := range *n.addrs.Load() {
			h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type, TTL: 300}
			switch {
			case a.Is4() && q.Type == dnsmessage.TypeA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
			case a.Is6() && q.Type == dnsmessage.TypeAAAA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

// twoPods are two functions on one port of two addresses; each answers with
// its address.
func twoPods(t *testing.T) (port string) {
	t.Helper()
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(first.Addr().String())
	second, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{first, second} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			_, _ = io.WriteString(w, r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		}))
		_ = server.Listener.Close()
		server.Listener = l
		server.Start()
		t.Cleanup(server.Close)
	}
	return port
}

// A kept-alive connection would call the pod that left the name for ever.
func TestKeepAliveDoesNotPinOldPods(t *testing.T) {
	t.Parallel()
	port := twoPods(t)
	var dns names
	c := new(clock)
	s := newSenderWith(t, "http://fn.test:"+port, httptarget.Options{Now: c.now, Resolver: dns.resolver(t)}, nil)
	for _, step := range []struct {
		turn      time.Duration
		dns, want string
	}{
		{0, "127.0.0.1", "127.0.0.1"},
		{time.Minute, "127.0.0.2", "127.0.0.1"}, // the connection is kept
		{4 * time.Minute, "127.0.0.2", "127.0.0.2"},
		{5 * time.Minute, "127.0.0.1", "127.0.0.1"},
	} {
		c.turn(step.turn)
		dns.are(step.dns)
		if resp := send(t, s, request()); string(resp.Body) != step.want+":"+port {
			t.Errorf("after %v: called %s, %v; want %s", step.turn, resp.Body, resp.Err, step.want)
		}
	}
}

// The address that is dialled is checked, not the one an earlier lookup found.
func TestDNSIsCheckedAgainForEachConnection(t *testing.T) {
	t.Parallel()
	port := twoPods(t)
	var dns names
	c := new(clock)
	s := newSenderWith(t, "http://fn.test:"+port, httptarget.Options{Now: c.now, Resolver: dns.resolver(t)}, func(t *bridge.Target) {
		t.Network = bridge.Network{Profile: "public", Allow: []string{"127.0.0.2/32"}}
	})
	dns.are("127.0.0.2")
	if resp := send(t, s, request()); resp.Status != 200 {
		t.Fatalf("Send = %d, %v", resp.Status, resp.Err)
	}
	for _, rebound := range []string{"127.0.0.1", "169.254.169.254", "::1", "::ffff:169.254.169.254", "fd00:ec2::254", "0.0.0.0", "10.0.0.1"} {
		c.turn(6 * time.Minute)
		dns.are(rebound)
		resp := send(t, s, request())
		if resp.Err == nil || resp.Sent || resp.Class != bridge.FailureConnect || !strings.Contains(resp.Err.Error(), "address not allowed") {
			t.Errorf("name moved to %s: Send = %d, class %q, %v; want the address refused", rebound, resp.Status, resp.Class, resp.Err)
		}
	}
	c.turn(6 * time.Minute)
	dns.are("127.0.0.1", "127.0.0.2")
	if resp := send(t, s, request()); string(resp.Body) != "127.0.0.2:"+port {
		t.Errorf("a name with both: called %s, %v; want the allowed one", resp.Body, resp.Err)
	}
}

// A function cannot send us where its URL may not lead.
func TestRedirectToTheMetadataServiceIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", status)
		})
		if resp := send(t, newSender(t, url, nil), request()); resp.Status != status || resp.Err != nil {
			t.Errorf("Send = %d, %v; want the %d itself", resp.Status, resp.Err, status)
		}
	}
}

// However an address is written: some resolvers read these as numbers.
func TestOddHostsDoNotReachTheMetadataService(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fd00:ec2::254]",
		"2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.16689662", "169.254.43518", "0", "0.0.0.0", "[::]",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			s := newSender(t, "http://"+host+"/latest/meta-data/", func(t *bridge.Target) { t.HTTP.Timeout = 3 * time.Second })
			if resp := send(t, s, request()); resp.Err == nil || resp.Sent || resp.Class != bridge.FailureConnect {
				t.Errorf("Send = %d, class %q, sent %v, %v; want an unsent failure", resp.Status, resp.Class, resp.Sent, resp.Err)
			}
		})
	}
}
