package bridge

import "reflect"

//go:generate go run ./internal/describe -package bridge -out descriptions.go -types Config,Source,Target,Route,Queue .

// Description is what a field of one of this package's structs is for: the
// field's comment, or else that of its type, in Markdown, with the names of a
// configuration file. "" where there is none.
func Description(of reflect.Type, f reflect.StructField) string {
	if text := descriptions[of.Name()+"."+f.Name]; text != "" {
		return text
	}
	t := f.Type
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return descriptions[t.Name()]
}
