package bridge

// The allowed words of every enumeration of config.md, in its order.
var (
	jitters = []string{JitterEqual, JitterFull, JitterNone}
)
