package devbroker

// retain deletes the runs of a partition that end at or before an offset.
func (w *writing) retain(part int64, first uint64) {
	w.free(`SELECT extents FROM run WHERE part = ?1 AND base < ?2 AND base + count <= ?2`, part, signed(first))
	w.do("oldruns", part, signed(first))
}

// retainJournal deletes the journal's rows of which nothing is left.
func (w *writing) retainJournal(parts []partitionRow) {
	for _, row := range w.store.journal.dying(parts) {
		w.do("noentry", row)
	}
}

// free notes as freed what rows of runs point to.
func (w *writing) free(query string, args ...any) {
	if w.err != nil {
		return
	}
	l := &loading{store: w.store}
	l.each("runs", query, func(scan func(...any) error) error {
		var packed []byte
		if err := scan(&packed); err != nil {
			return err
		}
		extents, err := decodeExtents(packed)
		for _, p := range extents {
			if w.freed == nil {
				w.freed = map[int64]int{}
			}
			w.freed[p.file] += p.size
		}
		return err
	}, args...)
	w.err = l.err
}

// release notes in the rows of the files what was freed.
func (w *writing) release() {
	for file, size := range w.freed {
		w.do("freed", size, file)
	}
}

// filesOf lists the files of a queue.
func (w *writing) filesOf(queue int64) (files []int64) {
	l := &loading{store: w.store, err: w.err}
	l.each("files", `SELECT num FROM file WHERE queue = ?`, func(scan func(...any) error) error {
		var num int64
		err := scan(&num)
		files = append(files, num)
		return err
	}, queue)
	w.err = l.err
	return files
}
