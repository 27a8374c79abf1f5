package ingress

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/queenbridge/queenbridge/bridge"
)

// catalog is what the sources of one configuration compile to. It never
// changes: another one takes its place as a whole, and requests under way end
// on the one they began with.
type catalog struct {
	sources map[string]*source
	// clientCerts says that a source wants to see the sender's certificate.
	clientCerts bool
}

// Update replaces the sources, as after a secret was rotated, and reads the
// listener's certificate again. Its error names everything that is wrong, and
// nothing has changed then. Requests under way
// end on the sources they began with. A source that did not change keeps its
// limits and what it remembers; one that did keeps what still means the same.
// The list must not be changed afterwards. Process settings stay as they are.
func (s *Server) Update(sources []bridge.Source) error {
	s.updating.Lock()
	defer s.updating.Unlock()
	if s.draining.Load() {
		return errors.New("update sources: the ingress stops")
	}
	before := s.catalog.Load()
	next, err := s.compile(sources, before)
	if err != nil {
		return err
	}
	if s.certificate.Load() != nil {
		if err := s.loadCertificate(); err != nil {
			return err
		}
	}
	s.catalog.Store(next)
	for name := range before.sources {
		if next.sources[name] == nil {
			s.metrics.lastVerified.DeleteLabelValues(name) // or its age would raise alarms for ever
		}
	}
	return nil
}

// compile makes a catalog; before is the one it replaces.
func (s *Server) compile(list []bridge.Source, before *catalog) (*catalog, error) {
	next := &catalog{sources: make(map[string]*source, len(list))}
	var problems []error
	for _, config := range list {
		compiled, err := s.compileOne(config, before.sources[config.Name])
		switch {
		case err != nil:
			problems = append(problems, err)
		case next.sources[config.Name] != nil:
			problems = append(problems, fmt.Errorf("source %q: the name is used twice", config.Name))
		default:
			next.sources[config.Name] = compiled
			next.clientCerts = next.clientCerts || compiled.clientCert
		}
	}
	return next, errors.Join(problems...)
}

func (s *Server) compileOne(config bridge.Source, old *source) (*source, error) {
	if old != nil && reflect.DeepEqual(old.config, config) {
		return old, nil
	}
	out, err := compileSource(config, sourceParts{fetcher: s.fetcher, spool: s.spooler != nil, metrics: s.metrics})
	if err != nil {
		return nil, err
	}
	if out.buffer, err = s.batcher.buffer(out, out.queue); err != nil {
		return nil, fmt.Errorf("source %q: %w", config.Name, err)
	}
	if out.quarantine != nil {
		if out.apart, err = s.batcher.buffer(out, bridge.QuarantineQueue(out.queue)); err != nil {
			return nil, fmt.Errorf("source %q: %w", config.Name, err)
		}
	}
	if old != nil {
		out.inherit(old)
	}
	return out, nil
}
