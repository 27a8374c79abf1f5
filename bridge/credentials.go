package bridge

import "reflect"

// VisitCredentials calls visit for each text of a resource's document that is a
// credential, with its path in the document; visit may change the text. These
// are the fields of type Secret, and those headers of a target and options of a
// scheme whose name says so (hideText). Transforms are expressions, no
// credentials. What has another shape than the kind's type is passed over:
// decoding reports it.
func VisitCredentials(k Kind, doc *Node, visit func(path string, n *Node)) {
	v := credentialVisitor{visit}
	v.walk("", k.Type(), doc)
}

type credentialVisitor struct{ visit func(string, *Node) }

func (v credentialVisitor) walk(path string, t reflect.Type, n *Node) {
	switch {
	case t == secretType:
		if n.Kind == NodeString {
			v.visit(path, n)
		}
	case t == reflect.TypeFor[Transform]():
	case t.Kind() == reflect.Pointer:
		v.walk(path, t.Elem(), n)
	case t.Kind() == reflect.Slice:
		for i := range n.Items {
			v.walk(atIndex(path, i), t.Elem(), &n.Items[i])
		}
	case t.Kind() == reflect.Struct:
		v.structure(path, t, n)
	case t.Kind() == reflect.Map:
		v.loose(path, "", n)
	}
}

func (v credentialVisitor) structure(path string, t reflect.Type, n *Node) {
	types := map[string]reflect.Type{}
	for name, i := range fields(t) {
		types[name] = t.Field(i).Type
	}
	for i := range n.Members {
		m := &n.Members[i]
		if fieldType, known := types[m.Key]; known {
			v.walk(atKey(path, m.Key), fieldType, &m.Value)
		}
	}
}

// loose walks what has no types; key is the nearest name above.
func (v credentialVisitor) loose(path, key string, n *Node) {
	if n.Kind == NodeString && n.Text != "" && hideText(key, n.Text) == hidden {
		v.visit(path, n)
	}
	for i := range n.Items {
		v.loose(atIndex(path, i), key, &n.Items[i])
	}
	for i := range n.Members {
		v.loose(atKey(path, n.Members[i].Key), n.Members[i].Key, &n.Members[i].Value)
	}
}

// Hidden is what stands for a credential that is not shown.
const Hidden = hidden

// Masked is a resource's document as it may be shown: references as they were
// written, other credentials as ***.
func Masked(k Kind, doc Node) Node {
	doc = doc.Clone()
	VisitCredentials(k, &doc, func(_ string, n *Node) {
		if n.Reference == "" && n.Text != "" {
			n.Text = hidden
		}
	})
	doc.Walk("", func(_ string, n *Node) {
		if n.Reference != "" {
			n.Kind, n.Text, n.Reference = NodeString, n.Reference, ""
		}
	})
	return doc
}
