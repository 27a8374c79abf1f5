package signing

import (
	"crypto"
	"crypto/x509"
	"errors"
	"hash/crc32"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// PayPal signs the ids of a transmission and a checksum of the body, with the
// key of a certificate it names (PayPal, "Verify webhook signature").

const (
	payPalID, payPalTime  = "PayPal-Transmission-Id", "PayPal-Transmission-Time"
	payPalSig, payPalCert = "PayPal-Transmission-Sig", "PayPal-Cert-Url"
	payPalAlgo            = "PayPal-Auth-Algo"
)

var payPalCertificate = regexp.MustCompile(`^https://api\.(sandbox\.)?paypal\.com/v1/notifications/certs/[A-Za-z0-9_-]+$`)

func payPalOptions(r *reader, s *scheme) {
	if s.settings.webhookID = r.text("webhook_id"); !r.has("webhook_id") {
		r.add(r.at("webhook_id"), "is required: the id PayPal shows beside the webhook, which it signs")
	}
	keysOption(r, s)
	needsKeys(r, s)
}

// loadPayPal fetches a certificate and checks that a public authority issued
// it to PayPal.
func loadPayPal(v *Verifier, in *input, address string) (crypto.PublicKey, error) {
	return loadCertificate(v, in, address, payPalChain)
}

func payPalChain(v *Verifier, chain []*x509.Certificate, now time.Time) error {
	options := x509.VerifyOptions{
		Roots: v.roots(), Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return errors.New("no authority this host trusts issued the certificate, or it is not valid now")
	}
	for _, name := range append(chain[0].DNSNames, chain[0].Subject.CommonName) {
		if strings.HasSuffix(name, ".paypal.com") {
			return nil
		}
	}
	return errors.New("the certificate was not issued to paypal.com")
}

func provePayPal(v *Verifier, in *input) (Proof, error) {
	message, rej := v.payPalMessage(in)
	if rej != nil {
		return Proof{}, rej
	}
	text, rej := in.needed(payPalSig, ReasonMissingSignature)
	if rej != nil {
		return Proof{}, rej
	}
	address, rej := in.needed(payPalCert, ReasonMissingPart)
	if rej != nil {
		return Proof{}, rej
	}
	sig, err := encodingBase64.decode(text)
	switch algo, rej := in.single(payPalAlgo); {
	case rej != nil:
		return Proof{}, rej
	case algo != "SHA256withRSA":
		return Proof{}, reject(ReasonUnsupported, "%s is not SHA256withRSA", payPalAlgo)
	case !payPalCertificate.MatchString(address):
		return Proof{}, reject(ReasonUnknownKey, "%s is no certificate of PayPal", payPalCert)
	case err != nil:
		return Proof{}, reject(ReasonMalformedSignature, "%s is not base64", payPalSig)
	}
	public, err := v.publicKey(in, address)
	if err != nil {
		return Proof{}, err
	}
	if !algRSA.verify(public, message, sig) {
		return Proof{}, reject(ReasonBadSignature, "%s: the certificate it names did not sign this body and webhook id", payPalSig)
	}
	return Proof{Class: Verified, Secret: -1}, nil
}

// payPalMessage is id|time|webhook id|CRC-32 of the body in decimal.
func (v *Verifier) payPalMessage(in *input) ([]byte, *Rejection) {
	id, rej := in.needed(payPalID, ReasonMissingPart)
	if rej != nil {
		return nil, rej
	}
	at, rej := in.needed(payPalTime, ReasonMissingPart)
	if rej != nil {
		return nil, rej
	}
	checksum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(in.request.Body)), 10)
	return []byte(strings.Join([]string{id, at, v.scheme.settings.webhookID, checksum}, "|")), nil
}
