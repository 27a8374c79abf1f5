package dispatch

// Cramp divides what may be settled at a time: large payloads without the
// bytes.
func (c *Config) Cramp(by int) {
	c.room = room{standardRoom.inline / by, standardRoom.riders / by, standardRoom.stored / by}
}

// Park says up to how many routes every queue is polled long.
func (c *Config) Park(routes int) { c.parked = &routes }
