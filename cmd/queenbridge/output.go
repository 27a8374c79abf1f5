package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// printJSON prints a value for programs.
func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// field is one line of what a command shows about one thing.
type field struct{ name, text string }

// printFields prints what is not empty, the values in one column.
func printFields(out io.Writer, title string, fields []field) error {
	const column = 18
	var b strings.Builder
	b.WriteString(title + "\n")
	for _, f := range fields {
		if f.text != "" {
			text := strings.ReplaceAll(f.text, "\n", "\n"+strings.Repeat(" ", column))
			fmt.Fprintf(&b, "  %-*s%s\n", column-2, f.name, text)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// span is a duration as people write it: 72h, not 72h0m0s; "" for none.
func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
