package devbroker_test

import (
	"encoding/json"
	"maps"
	"strconv"
)

func merge(a, b obj) obj {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func num(n int) json.Number { return json.Number(strconv.Itoa(n)) }
