package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // eBay and Amazon SNS (version 1) sign SHA-1
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"math/big"
)

// algorithm is how a public key checks a signature. It always comes from the
// configuration or the preset, never from the request.
type algorithm string

const (
	algEd25519      algorithm = "ed25519"
	algECDSA        algorithm = "ecdsa-p256-sha256" // DER
	algECDSASHA1    algorithm = "ecdsa-p256-sha1"   // DER
	algRSA          algorithm = "rsa-sha256"        // PKCS #1 v1.5
	algRSASHA1      algorithm = "rsa-sha1"          // PKCS #1 v1.5
	algRSAPSS       algorithm = "rsa-pss-sha512"    // RFC 9421, 3.3.1: a salt of 64 bytes
	algECDSAConcat  algorithm = "ecdsa-p256-sha256-p1363"
	sizeECDSAConcat           = 64
)

// algorithms are those of the generic verifier public-key.
var algorithms = []string{string(algEd25519), string(algECDSA), string(algECDSASHA1), string(algRSA), string(algRSASHA1)}

// digest hashes the message as the algorithm wants it; Ed25519 takes the
// message itself.
func (a algorithm) digest(message []byte) ([]byte, crypto.Hash) {
	switch a {
	case algECDSA, algECDSAConcat, algRSA:
		sum := sha256.Sum256(message)
		return sum[:], crypto.SHA256
	case algECDSASHA1, algRSASHA1:
		sum := sha1.Sum(message) //nolint:gosec // see the import
		return sum[:], crypto.SHA1
	case algRSAPSS:
		sum := sha512.Sum512(message)
		return sum[:], crypto.SHA512
	}
	return message, 0
}

// verify reports whether sig is the key's signature over the message.
func (a algorithm) verify(public crypto.PublicKey, message, sig []byte) bool {
	sum, hash := a.digest(message)
	switch key := public.(type) {
	case ed25519.PublicKey:
		return a == algEd25519 && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, sig)
	case *ecdsa.PublicKey:
		switch a {
		case algECDSA, algECDSASHA1:
			return ecdsa.VerifyASN1(key, sum, sig)
		case algECDSAConcat:
			return verifyConcat(key, sum, sig)
		}
	case *rsa.PublicKey:
		switch a {
		case algRSA, algRSASHA1:
			return rsa.VerifyPKCS1v15(key, hash, sum, sig) == nil
		case algRSAPSS:
			return rsa.VerifyPSS(key, hash, sum, sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}) == nil
		}
	}
	return false
}

// verifyConcat checks a signature written as r and s of 32 bytes each (IEEE
// P1363), the form of JOSE and RFC 9421.
func verifyConcat(key *ecdsa.PublicKey, sum, sig []byte) bool {
	if len(sig) != sizeECDSAConcat {
		return false
	}
	r, s := new(big.Int).SetBytes(sig[:sizeECDSAConcat/2]), new(big.Int).SetBytes(sig[sizeECDSAConcat/2:])
	return ecdsa.Verify(key, sum, r, s)
}

// fits reports what is wrong with a key for the algorithm.
func (a algorithm) fits(public crypto.PublicKey) error {
	switch key := public.(type) {
	case ed25519.PublicKey:
		if a == algEd25519 {
			return nil
		}
	case *ecdsa.PublicKey:
		switch a {
		case algECDSA, algECDSASHA1, algECDSAConcat:
			if key.Curve != elliptic.P256() {
				return fmt.Errorf("is a key of curve %s: %s needs P-256", key.Params().Name, a)
			}
			return nil
		}
	case *rsa.PublicKey:
		switch a {
		case algRSA, algRSASHA1, algRSAPSS:
			if key.Size() < 128 { // crypto/rsa refuses less
				return fmt.Errorf("is an RSA key of %d bits: at least 1024 are needed", key.N.BitLen())
			}
			return nil
		}
	}
	return fmt.Errorf("is %s: %s needs %s", keyKind(public), a, a.keyKind())
}

func keyKind(public crypto.PublicKey) string {
	switch public.(type) {
	case ed25519.PublicKey:
		return "an Ed25519 key"
	case *ecdsa.PublicKey:
		return "an ECDSA key"
	case *rsa.PublicKey:
		return "an RSA key"
	}
	return "a key of another kind"
}

func (a algorithm) keyKind() string {
	switch a {
	case algEd25519:
		return "an Ed25519 key"
	case algECDSA, algECDSASHA1, algECDSAConcat:
		return "an ECDSA key of curve P-256"
	}
	return "an RSA key"
}

// sign makes the signature [Forge] writes.
func (a algorithm) sign(private crypto.Signer, message []byte) ([]byte, error) {
	if private == nil {
		return nil, errors.New("the secret is a public key: only the provider can sign (a private key of your own may be given to sign with)")
	}
	if err := a.fits(private.Public()); err != nil {
		return nil, fmt.Errorf("the private key %w", err)
	}
	sum, hash := a.digest(message)
	if key, ok := private.(*ecdsa.PrivateKey); ok && a == algECDSAConcat {
		return signConcat(key, sum)
	}
	var opts crypto.SignerOpts = hash
	if a == algRSAPSS {
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	}
	return private.Sign(rand.Reader, sum, opts)
}

func signConcat(key *ecdsa.PrivateKey, sum []byte) ([]byte, error) {
	r, s, err := ecdsa.Sign(rand.Reader, key, sum)
	if err != nil {
		return nil, err
	}
	sig := make([]byte, sizeECDSAConcat)
	r.FillBytes(sig[:sizeECDSAConcat/2])
	s.FillBytes(sig[sizeECDSAConcat/2:])
	return sig, nil
}
