package signing

import (
	"crypto/x509"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// clientRules are the options of scheme mtls.
type clientRules struct {
	roots *x509.CertPool
	// sans and cns are the names that may call; one must match.
	sans, cns []string
	// header holds the certificate where TLS ends before us; it counts from
	// proxies alone.
	header  string
	proxies []netip.Prefix
}

// clientOptions reads the options of mtls.
func clientOptions(r *reader, s *scheme) {
	rules := &s.settings.client
	if !r.has("ca") {
		r.add(r.at("ca"), "is required: the PEM certificates of who issues the client certificates")
	}
	if text := r.text("ca"); text != "" {
		issuers, err := certificates(text)
		if err != nil {
			r.add(r.at("ca"), "%s", err)
		}
		rules.roots = x509.NewCertPool()
		for _, c := range issuers {
			rules.roots.AddCert(c)
		}
	}
	rules.sans, rules.cns = r.oneOrMore("sans"), r.oneOrMore("cns")
	if !r.has("sans") && !r.has("cns") {
		r.add(r.path, "does not say who may call: set sans (names in the certificate) or cns (its common name)")
	}
	rules.header = headerName(r, "forwarded_header")
	rules.proxies = prefixesOption(r, "trusted_proxies")
	if (rules.header != "") != r.has("trusted_proxies") {
		r.add(r.at("forwarded_header"), "and trusted_proxies belong together: a forwarded certificate counts only from those proxies")
	}
}

// prefixesOption reads a list of CIDRs; an address alone is itself.
func prefixesOption(r *reader, key string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range r.oneOrMore(key) {
		if addr, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			r.add(r.at(key), "%q is no CIDR such as 10.0.0.0/8", text)
			continue
		}
		all = append(all, p.Masked())
	}
	return all
}

// proveClient proves a request by the certificate of its sender.
func proveClient(v *Verifier, in *input) (Proof, error) {
	rules := &v.scheme.settings.client
	chain, rej := rules.shown(in)
	if rej != nil {
		return Proof{}, rej
	}
	if rej := rules.trust(chain, in.request.Now); rej != nil {
		return Proof{}, rej
	}
	return Proof{Class: Authenticated, Secret: -1}, nil
}

// shown is the certificate of the sender: of the connection, or forwarded by
// a proxy that is trusted.
func (rules *clientRules) shown(in *input) ([]*x509.Certificate, *Rejection) {
	if rules.header != "" && rules.fromProxy(in.request.Peer) {
		value, rej := in.single(rules.header)
		if rej != nil {
			return nil, rej
		}
		text, err := url.PathUnescape(value) // + is a character of base64 here
		if value == "" || err != nil {
			return nil, reject(ReasonMissingCredential, "%s", rules.header)
		}
		chain, err := certificates(text)
		if err != nil {
			return nil, reject(ReasonBadCredential, "%s %s", rules.header, err)
		}
		return chain, nil
	}
	if in.request.TLS == nil || len(in.request.TLS.PeerCertificates) == 0 {
		return nil, reject(ReasonMissingCredential, "the connection shows no client certificate")
	}
	return in.request.TLS.PeerCertificates, nil
}

func (rules *clientRules) fromProxy(peer netip.Addr) bool {
	peer = peer.Unmap().WithZone("")
	return slices.ContainsFunc(rules.proxies, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// trust checks who issued the certificate, when it is valid and whom it names.
func (rules *clientRules) trust(chain []*x509.Certificate, now time.Time) *Rejection {
	leaf := chain[0]
	options := x509.VerifyOptions{
		Roots: rules.roots, Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(options); err != nil {
		return reject(ReasonBadCertificate, "the client certificate was not issued by ca, or is not valid now")
	}
	if slices.Contains(rules.cns, leaf.Subject.CommonName) || slices.ContainsFunc(rules.sans, func(name string) bool { return hasName(leaf, name) }) {
		return nil
	}
	return reject(ReasonNotAllowed, "the client certificate has none of the names in sans and cns")
}

// hasName reports whether a certificate is for a name: DNS, mail, IP or URI.
func hasName(c *x509.Certificate, name string) bool {
	addr, err := netip.ParseAddr(name)
	for _, ip := range c.IPAddresses {
		if other, ok := netip.AddrFromSlice(ip); err == nil && ok && other.Unmap() == addr.Unmap() {
			return true
		}
	}
	return slices.ContainsFunc(c.DNSNames, func(n string) bool { return strings.EqualFold(n, name) }) ||
		slices.Contains(c.EmailAddresses, name) ||
		slices.ContainsFunc(c.URIs, func(u *url.URL) bool { return u.String() == name })
}
