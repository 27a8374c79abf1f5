package dispatch

import "sync"

// load counts what is not finished yet, and tells when nothing is.
type load struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil while nobody waits
}

func (l *load) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += n
	if l.n == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

// empty is closed when nothing is left.
func (l *load) empty() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.none == nil {
		l.none = make(chan struct{})
		if l.n == 0 {
			none := l.none
			close(none)
			l.none = nil
			return none
		}
	}
	return l.none
}
