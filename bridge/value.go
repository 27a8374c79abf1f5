package bridge

// Secret is a credential. It prints as *** everywhere; Reveal is the only way
// to its text.
type Secret string

// Reveal returns the secret's text.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Size is a number of bytes, written 512KiB, 10MiB, 1GiB or as a plain number.
type Size int64
