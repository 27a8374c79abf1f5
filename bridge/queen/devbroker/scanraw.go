package devbroker

// This file is the scanner's part that moves past values and keeps their
// bytes.

// raw consumes any value and returns its bytes as they are.
func (s *scanner) raw() ([]byte, error) {
	s.peek()
	start := s.at
	if err := s.skip(); err != nil {
		return nil, err
	}
	return s.doc[start:s.at], nil
}

// skip consumes any value. It does not recurse: depth is bounded by the size
// of the document only, as it is for the real broker's raw values.
func (s *scanner) skip() error {
	s.stack = s.stack[:0]
	for {
		opened, err := s.skipOne()
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		if done, err := s.closeBrackets(); done || err != nil {
			return err
		}
	}
}

// skipOne consumes a scalar, or opens a container that is not empty and stands
// at its first value.
func (s *scanner) skipOne() (opened bool, err error) {
	switch c := s.peek(); {
	case c == '{':
		s.at++
		if s.peek() == '}' {
			s.at++
			return false, nil
		}
		s.stack = append(s.stack, '}')
		return true, s.skipKey()
	case c == '[':
		s.at++
		if s.peek() == ']' {
			s.at++
			return false, nil
		}
		s.stack = append(s.stack, ']')
		return true, nil
	case c == '"':
		_, err = s.skipString()
		return false, err
	case c == 't' && s.literal("true"), c == 'f' && s.literal("false"), c == 'n' && s.literal("null"):
		return false, nil
	case c == '-' || c >= '0' && c <= '9':
		return false, s.skipNumber()
	}
	if s.at >= len(s.doc) {
		return false, s.fail("EOF while parsing a value")
	}
	return false, s.fail("expected value")
}

// closeBrackets consumes what may follow a value inside its containers, up to
// the next value.
func (s *scanner) closeBrackets() (done bool, err error) {
	for len(s.stack) > 0 {
		closing := s.stack[len(s.stack)-1]
		closed, err := s.next(closing, "a container")
		if err != nil {
			return false, err
		}
		if !closed {
			if closing == '}' {
				return false, s.skipKey()
			}
			return false, nil
		}
		s.stack = s.stack[:len(s.stack)-1]
	}
	return true, nil
}

func (s *scanner) skipKey() error {
	if s.peek() != '"' {
		return s.fail(s.eof("an object", "key must be a string"))
	}
	if _, err := s.skipString(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return s.fail(s.eof("an object", "expected `:`"))
	}
	s.at++
	return nil
}

func (s *scanner) skipNumber() error {
	n := number(s.doc[s.at:])
	if n == 0 {
		return s.fail("invalid number")
	}
	s.at += n
	return nil
}

// number returns the length of the JSON number b starts with, or 0.
func number(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	n := digits(b[i:])
	if n == 0 || n > 1 && b[i] == '0' {
		return 0
	}
	i += n
	if i < len(b) && b[i] == '.' {
		n := digits(b[i+1:])
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := digits(b[i:])
		if n == 0 {
			return 0
		}
		i += n
	}
	return i
}

func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
