package ingress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
	// maxHeader bounds the header block. net/http adds 4 KiB of its own.
	maxHeader = 64<<10 - 4<<10
)

// httpServer sets the limits of connections. Each is mandatory: without a
// deadline, a Content-Length of 10 with 2 bytes behind it holds a connection
// for ever.
func (s *Server) httpServer(ctx context.Context) (*http.Server, error) {
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,                           // bodyReader moves it as bytes arrive
		WriteTimeout:      exchangeTime(0) + s.enqueueTimeout, // moved, too
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * would be answered by net/http itself.
		DisableGeneralOptionsHandler: true,
		TLSConfig:                    config,
		ConnContext:                  withConnection,
		BaseContext:                  func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:                     slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}, nil
}

// exchangeTime is the time from the header to the answer of a body of that
// size, the wait for Queen left out.
func exchangeTime(size int64) time.Duration {
	return bodyTime + bodyTimePerMiB*time.Duration(size/mebibyte+1) + headerTime
}

// loadCertificate reads the certificate of the listener, if there is one. It
// runs again at each Update: certificates are renewed.
func (s *Server) loadCertificate() error {
	if s.tls.Cert == "" && s.tls.Key == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(s.tls.Cert, s.tls.Key)
	if err != nil {
		return fmt.Errorf("ingress.tls: %w", err)
	}
	s.certificate.Store(&cert)
	return nil
}

// CheckTLS reads the files that the TLS settings name, as Run does: so that what
// is wrong with them is known before anything listens. Nil without TLS.
func (s *Server) CheckTLS() error {
	_, err := s.tlsConfig()
	return err
}

// tlsConfig is nil where no certificate is configured.
func (s *Server) tlsConfig() (*tls.Config, error) {
	if err := s.loadCertificate(); err != nil || s.certificate.Load() == nil {
		return nil, err
	}
	config := &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil },
		MinVersion:     tls.VersionTLS12,
		// Webhook senders speak HTTP/1.1, and one protocol is one set of limits.
		NextProtos: []string{"http/1.1"},
	}
	if s.tls.ClientCA == "" {
		config.GetConfigForClient = s.askCertificate(config)
		return config, nil
	}
	pem, err := os.ReadFile(s.tls.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("ingress.tls.client_ca: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("ingress.tls.client_ca: holds no PEM certificate")
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven // the handler refuses who shows none, with an answer that can be read
	return config, nil
}

// askCertificate asks clients for a certificate while a source wants to see
// one. Each source has its own authorities, so the source judges it.
func (s *Server) askCertificate(config *tls.Config) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	asking := config.Clone()
	asking.ClientAuth = tls.RequestClientCert
	return func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if s.catalog.Load().clientCerts {
			return asking, nil
		}
		return nil, nil // config itself
	}
}

// wrap makes every connection one whose framing is watched, inside of TLS.
func (s *Server) wrap(l net.Listener, config *tls.Config) net.Listener {
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return watchedListener{l}
}

type watchedListener struct{ net.Listener }

func (l watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if t, ok := c.(*tls.Conn); ok {
		return &watchedTLS{watched: watched{Conn: c}, tls: t}, nil
	}
	return &watched{Conn: c}, nil
}

// watched is a connection whose requests are checked for contradicting
// lengths as their bytes pass by.
type watched struct {
	net.Conn
	framing framing
}

func (c *watched) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.framing.see(p[:n])
	return n, err
}

// watchedTLS keeps what net/http asks of a TLS connection.
type watchedTLS struct {
	watched
	tls *tls.Conn
}

func (c *watchedTLS) ConnectionState() tls.ConnectionState       { return c.tls.ConnectionState() }
func (c *watchedTLS) HandshakeContext(ctx context.Context) error { return c.tls.HandshakeContext(ctx) }
func (c *watchedTLS) framed() *framing                           { return &c.framing }
func (c *watched) framed() *framing                              { return &c.framing }

// CloseWrite lets net/http end an answer before it drops what it did not read:
// a sender that is reset first never sees the 413 or 431.
func (c *watched) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type framingKey struct{}

// withConnection lets the handler find the framing of its connection.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if f, ok := c.(interface{ framed() *framing }); ok {
		return context.WithValue(ctx, framingKey{}, f.framed())
	}
	return ctx
}

// ambiguousLength says that a request has both Content-Length and
// Transfer-Encoding. net/http takes the latter and deletes the former; a proxy
// that took the former would see another request behind this one (RFC 9112,
// 6.1). Only chunked requests are looked at: the others cannot have both.
func ambiguousLength(r *http.Request) bool {
	if len(r.TransferEncoding) == 0 {
		return false
	}
	f, ok := r.Context().Value(framingKey{}).(*framing)
	return ok && f.contradicts.Load()
}
