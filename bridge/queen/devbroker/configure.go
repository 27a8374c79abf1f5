package devbroker

import (
	"net/http"
)

// configureRequest is the body of POST /api/v1/configure.
type configureRequest struct {
	queue           string
	hasQueue        bool
	namespace, task string
	opts            options
	wrong           string // an option of the wrong type
}

// parseConfigure reads the body. Options may stand in options or beside it;
// what is left out returns to its default, namespace and task included, and
// mode is ignored (measured 1.3.0).
func parseConfigure(body []byte) (configureRequest, error) {
	c := configureRequest{opts: defaultOptions()}
	s, err := scan(body)
	if err != nil {
		return c, err
	}
	if s.peek() == '{' {
		err = s.object(func(key []byte) error { return c.member(s, string(key)) })
	} else {
		_, err = s.raw()
	}
	if err == nil {
		err = s.end()
	}
	return c, err
}

func (c *configureRequest) member(s *scanner, name string) (err error) {
	switch name {
	case "queue":
		c.hasQueue = s.peek() == '"'
		c.queue, err = s.looseText()
	case "namespace":
		c.namespace, err = textOf(s)
	case "task":
		c.task, err = textOf(s)
	case "options":
		if s.peek() == '{' {
			return s.object(func(key []byte) error { return c.option(s, string(key)) })
		}
		_, err = s.raw()
	default:
		return c.option(s, name)
	}
	return err
}

func (c *configureRequest) option(s *scanner, name string) error {
	value, err := s.raw()
	if err == nil && string(value) != "null" && !c.opts.set(name, string(value)) {
		c.wrong = name
	}
	return err
}

func (b *Broker) handleConfigure(w http.ResponseWriter, r *http.Request, _ params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	c, err := parseConfigure(body.bytes)
	body.free()
	switch {
	case err != nil:
		badBody(w, err)
		return
	case !c.hasQueue:
		failure(w, http.StatusBadRequest, "queue is required")
		return
	case c.wrong != "" || len([]rune(c.queue)) > maxQueueName:
		b.log.Warn("configure refused", "option", c.wrong)
		failure(w, http.StatusInternalServerError, "configure failed: db error")
		return
	}
	var id string
	if err := b.update(func() { id = b.configure(&c) }); err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	o.str("task", c.task).str("queue", c.queue).raw("options", c.opts.json()).str("queueId", id)
	o.str("storage", "segments").str("namespace", c.namespace)
	answer(w, http.StatusOK, o.flag("configured", true).raw("partitionId", "null").bytes())
}

func (b *Broker) configure(c *configureRequest) (id string) {
	q := b.st.queues[c.queue]
	if q == nil {
		q = &queue{name: c.queue, namespace: c.namespace, task: c.task, opts: c.opts}
		b.addQueue(q)
		return q.id
	}
	moved := q.namespace != c.namespace || q.task != c.task
	q.namespace, q.task, q.opts = c.namespace, c.task, c.opts
	b.noteQueue(q)
	if moved {
		b.wakeForQueue(q)
	}
	now := b.now()
	for _, p := range q.order { // a holdback may have become shorter
		for _, c := range p.cursors {
			b.release(c, now)
		}
	}
	return q.id
}
