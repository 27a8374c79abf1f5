package main

import (
	"fmt"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/spf13/pflag"
)

// settings are the process settings a command line may give: a flag beats an
// environment variable beats the file.
type settings struct {
	configFlag
	logFlags
	flags *pflag.FlagSet

	ingressAddr, adminAddr string
	queenURLs              []string
	embedded, embeddedAddr string
	stopTimeout            time.Duration
}

func (s *settings) bind(fs *pflag.FlagSet) {
	s.flags = fs
	s.bindConfig(fs)
	fs.StringVar(&s.ingressAddr, "ingress-addr", "", "address of the webhook listener (ingress.addr)")
	fs.StringVar(&s.adminAddr, "admin-addr", "", "address of /livez, /readyz and /metrics (admin.addr)")
	fs.StringSliceVar(&s.queenURLs, "queen-urls", nil, "Queen nodes, comma-separated (queen.urls)")
	fs.StringVar(&s.embedded, "queen-embedded", "", `run the embedded broker: a directory, or "memory" (queen.embedded)`)
	fs.StringVar(&s.embeddedAddr, "queen-embedded-addr", "", "serve the embedded broker's API there (queen.embedded_addr)")
	fs.DurationVar(&s.stopTimeout, "stop-timeout", 0, "from SIGTERM to exit (stop_timeout)")
	s.bindLog(fs)
}

// apply lays the flags that were given over a configuration.
func (s *settings) apply(c *bridge.Config) {
	s.applyLog(&c.Log)
	if s.flags == nil {
		return
	}
	set := func(name string, f func()) {
		if s.flags.Changed(name) {
			f()
		}
	}
	set("ingress-addr", func() { c.Ingress.Addr = s.ingressAddr })
	set("admin-addr", func() { c.Admin.Addr = s.adminAddr })
	set("queen-urls", func() { c.Queen.URLs, c.Queen.Embedded = s.queenURLs, "" })
	set("queen-embedded", func() { c.Queen.Embedded, c.Queen.URLs = s.embedded, nil })
	set("queen-embedded-addr", func() { c.Queen.EmbeddedAddr = s.embeddedAddr })
	set("stop-timeout", func() { c.StopTimeout = s.stopTimeout })
}

// configFlag names the configuration file.
type configFlag struct{ config string }

func (f *configFlag) bindConfig(fs *pflag.FlagSet) {
	fs.StringVarP(&f.config, "config", "c", "", "configuration file (QUEENBRIDGE_CONFIG, else bridge.yaml)")
}

// logFlags say how a command logs.
type logFlags struct{ logLevel, logFormat string }

func (f *logFlags) bindLog(fs *pflag.FlagSet) {
	fs.StringVar(&f.logLevel, "log-level", "", "debug, info, warn or error (log.level)")
	fs.StringVar(&f.logFormat, "log-format", "", "text or json (log.format)")
}

func (f *logFlags) applyLog(c *bridge.LogConfig) {
	c.Level = orDefault(f.logLevel, c.Level)
	c.Format = orDefault(f.logFormat, c.Format)
}

// logging are the log settings of a command that reads no configuration file:
// flags over environment over defaults.
func (p *program) logging(f logFlags) (bridge.LogConfig, error) {
	c := bridge.LogConfig{Level: "info"}
	if v, ok := p.env("QUEENBRIDGE_LOG_LEVEL"); ok && v != "" {
		c.Level = v
	}
	if v, ok := p.env("QUEENBRIDGE_LOG_FORMAT"); ok {
		c.Format = v
	}
	f.applyLog(&c)
	switch c.Level {
	case "debug", "info", "warn", "error":
	default:
		return c, &usageError{err: fmt.Errorf("log level must be debug, info, warn or error, got %q", c.Level)}
	}
	switch c.Format {
	case "", "text", "json":
	default:
		return c, &usageError{err: fmt.Errorf("log format must be text or json, got %q", c.Format)}
	}
	return c, nil
}
