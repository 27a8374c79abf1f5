package lambdatarget

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/queenbridge/queenbridge/bridge"
)

// maxContext is how long an encoded client context may be, in bytes (Lambda's
// API reference of Invoke).
const maxContext = 3583

// clientContext tells a function which attempt of which delivery it is; nil
// where not even that fits. Where it is too long, what says least is left out.
func clientContext(r *bridge.Request) *string {
	custom := map[string]string{
		"webhook-id": r.DeliveryID, "queen-attempt": strconv.Itoa(r.Attempt),
		"queen-queue": r.Queue, "queen-partition": r.Partition,
	}
	if r.Traceparent != "" {
		custom["traceparent"] = r.Traceparent
	}
	for _, name := range []string{"queen-partition", "queen-queue", "traceparent", ""} {
		if text := encoded(custom); len(text) <= maxContext {
			return &text
		}
		delete(custom, name)
	}
	return nil
}

func encoded(custom map[string]string) string {
	doc, err := json.Marshal(map[string]map[string]string{"custom": custom})
	if err != nil { // strings always marshal
		return ""
	}
	return base64.StdEncoding.EncodeToString(doc)
}
