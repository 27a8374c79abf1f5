package adminapi

import (
	"reflect"

	"github.com/queenbridge/queenbridge/bridge"
)

//go:generate go run ../internal/describe -package adminapi -out descriptions.go -types Error,Meta,PauseRequest,DeliveryPage,DeadLetterPage,Order,OrderResult,RetryPage,TestEvent,TestResult,Replay,ReplayResult,Status,SchemeList,Resealed .

// Description is what a field of one of this package's structs is for, or, with
// a zero field, what a type is: its comment, in Markdown, with the names of the
// API. "" where there is none.
func Description(of reflect.Type, f reflect.StructField) string {
	if f.Name == "" {
		return descriptions[of.Name()]
	}
	if text := descriptions[of.Name()+"."+f.Name]; text != "" {
		return text
	}
	t := f.Type
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if text := descriptions[t.Name()]; text != "" {
		return text
	}
	return bridge.Description(of, f)
}
