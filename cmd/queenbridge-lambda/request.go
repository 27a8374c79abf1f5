package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// request makes the request that a listener would have made of the same bytes.
// Its error is a request that a listener refuses with 400.
func (e *event) request() (*http.Request, error) {
	target := e.path
	if e.query != "" {
		target += "?" + e.query
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, errors.New("the path is malformed")
	}
	if err := checkHead(e.method, e.header); err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: e.method, URL: u, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: e.header, Host: e.header.Get("Host"), RemoteAddr: remoteAddr(e.address),
		Body: io.NopCloser(bytes.NewReader(e.body)), ContentLength: int64(len(e.body)),
	}
	// As net/http does. The body is whole, whatever its framing was.
	delete(r.Header, "Host")
	delete(r.Header, "Transfer-Encoding")
	r.TLS, err = connectionState(e.certificate)
	return r, err
}

// checkHead refuses what cannot stand in the head of a request (RFC 9110, 5.5
// and 5.6.2).
func checkHead(method string, h http.Header) error {
	if !token(method) {
		return errors.New("the method is malformed")
	}
	for name, values := range h {
		if !token(name) {
			return fmt.Errorf("the header name %.40q is malformed", name)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("the value of header %.40q has control characters", name)
			}
		}
	}
	return nil
}

func token(s string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(marks, r)
	})
}

// remoteAddr is an address as a listener has it. Load balancers may add the
// client's port. What is no address is nobody's, and no allow-list has it.
func remoteAddr(address string) string {
	if a, err := netip.ParseAddr(address); err == nil {
		return netip.AddrPortFrom(a, 0).String()
	}
	if a, err := netip.ParseAddrPort(address); err == nil {
		return a.String()
	}
	return net.JoinHostPort("", "0")
}

// connectionState carries the certificate that API Gateway took from the client
// (mutual TLS on a custom domain). It is not verified here.
func connectionState(text string) (*tls.ConnectionState, error) {
	if text == "" {
		return nil, nil
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the client's certificate is no PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the client's certificate: %w", err)
	}
	return &tls.ConnectionState{HandshakeComplete: true, Version: tls.VersionTLS12, PeerCertificates: []*x509.Certificate{c}}, nil
}
