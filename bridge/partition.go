package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxPartition bounds a partition made of a value (config.md).
const maxPartition = 200

// PartitionName makes a value usable as a partition: over 200 bytes or with
// bytes outside 0x20 to 0x7e it is sha256:<hex>. Queen refuses a whole push for
// one control character (queen-contract.md §3).
func PartitionName(value string) string {
	plain := len(value) <= maxPartition
	for i := 0; plain && i < len(value); i++ {
		plain = value[i] >= 0x20 && value[i] <= 0x7e
	}
	if plain {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The kinds of a ValueForm.
const (
	FormBody    = "body"
	FormHeader  = "header"
	FormQuery   = "query"
	FormLiteral = "literal"
)

// ValueForm is where a configured value comes from: body:<path>,
// header:<name>, query:<name> or literal:<text>. Paths are those of
// presets.md §1.
type ValueForm struct{ Kind, Name string }

// ParseValueForm reads a value form; false where it is none or names nothing.
func ParseValueForm(s string) (ValueForm, bool) {
	kind, name, _ := strings.Cut(s, ":")
	switch kind {
	case FormBody, FormHeader, FormQuery, FormLiteral:
		return ValueForm{Kind: kind, Name: name}, name != ""
	}
	return ValueForm{}, false
}
