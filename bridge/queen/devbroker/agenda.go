package devbroker

// agenda is a heap of things with a due time. Each thing stands in it at most
// once and knows its own place.
type agenda[T agendaItem] struct{ items []T }

type agendaItem interface {
	comparable
	dueAt() micros
	place() *int // index + 1 in the agenda; 0 when it is not in it
}

func (a *agenda[T]) len() int { return len(a.items) }

// first returns the thing due soonest.
func (a *agenda[T]) first() (item T, ok bool) {
	if len(a.items) == 0 {
		return item, false
	}
	return a.items[0], true
}

// put adds a thing, or moves it when its due time has changed.
func (a *agenda[T]) put(item T) {
	at := item.place()
	if *at == 0 {
		a.items = append(a.items, item)
		*at = len(a.items)
	}
	a.up(*at - 1)
	a.down(*item.place() - 1)
}

func (a *agenda[T]) remove(item T) {
	at := *item.place()
	if at == 0 {
		return
	}
	i, last := at-1, len(a.items)-1
	a.swap(i, last)
	var none T
	a.items[last] = none
	a.items = a.items[:last]
	*item.place() = 0
	if i < last {
		a.up(i)
		a.down(i)
	}
}

func (a *agenda[T]) swap(i, j int) {
	a.items[i], a.items[j] = a.items[j], a.items[i]
	*a.items[i].place(), *a.items[j].place() = i+1, j+1
}

func (a *agenda[T]) less(i, j int) bool { return a.items[i].dueAt() < a.items[j].dueAt() }

func (a *agenda[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !a.less(i, parent) {
			return
		}
		a.swap(i, parent)
		i = parent
	}
}

func (a *agenda[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(a.items) {
			return
		}
		if child+1 < len(a.items) && a.less(child+1, child) {
			child++
		}
		if !a.less(child, i) {
			return
		}
		a.swap(i, child)
		i = child
	}
}
