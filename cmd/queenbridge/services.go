package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/sqlitefile"
	"github.com/queenbridge/queenbridge/ingress"
)

// service is one part that runs until its context ends.
type service struct {
	name string
	run  func(context.Context) error
}

// runServices runs all of them, and ends all when one fails. Every service
// has stopped when it returns.
func runServices(ctx context.Context, all ...service) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, s := range all {
		wg.Go(func() {
			if err := s.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				mu.Lock()
				errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
				mu.Unlock()
				cancel(err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// listen opens a TCP listener; its error says what to do.
func listen(ctx context.Context, setting, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &usageError{
			err:  fmt.Errorf("listen for %s: %w", setting, err),
			hint: fmt.Sprintf("choose a free address with %s or its QUEENBRIDGE_ variable", setting),
		}
	}
	return l, nil
}

// unusable adds to the error of a store what to do about its directory, which
// the setting names. Another error is returned as it is.
func unusable(err error, setting string) error {
	if errors.Is(err, sqlitefile.ErrInUse) || errors.Is(err, ingress.ErrSpoolInUse) {
		return &usageError{err: err, hint: fmt.Sprintf("another process runs with this directory: stop it, or choose another with %s", setting)}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return &usageError{err: err, hint: fmt.Sprintf("%s must be a directory that this user may write, or make", setting)}
	}
	return err
}

// serveHTTP serves a handler until ctx ends, then lets requests finish within
// grace.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, grace time.Duration) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		err := srv.Shutdown(end)
		if err != nil {
			_ = srv.Close()
		}
		stopped <- nil
	})
	err := srv.Serve(l)
	if stop() { // Serve failed by itself
		return err
	}
	return <-stopped
}
