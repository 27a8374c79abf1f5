package bridge

import "fmt"

// Problem is one thing wrong with a configuration, at a path such as
// routes[2].retry.max_attempts. Text says what is wrong and, where it is not
// plain, what to do.
type Problem struct {
	Path string
	Text string
	// Warning marks a problem that does not stop the bridge.
	Warning bool
	// Line is set where Path alone does not lead there: at a repeated field.
	Line int

	// form marks a problem found by Decode: what stands at Path was not read,
	// so what Validate says about it is noise.
	form bool
	// meant is the path that an unknown field probably stands for.
	meant string
	// unknown marks a field that this version does not know.
	unknown bool
}

// Unknown says that the problem is a field this version does not know: a typing
// error, or a newer version's.
func (p Problem) Unknown() bool { return p.unknown }

func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.Path, p.Text) }
