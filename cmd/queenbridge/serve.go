package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/aws"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/rules"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
	"github.com/queenbridge/queenbridge/ingress"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"
)

// parts are the services `serve --only` chooses from.
var parts = []string{"ingress", "dispatch", "admin"}

func (p *program) serveCommand() *cobra.Command {
	var s settings
	var only []string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the bridge: ingress, dispatch and the admin API",
		Long: "serve runs the bridge until SIGTERM. Sources, targets, routes and queues follow the configuration without a\n" +
			"restart: when its file or a file that it refers to changes, and on SIGHUP. Only what changed is touched: a route\n" +
			"lets its calls finish first. What needs a restart is logged; a broken file changes nothing.",
		Example: "  queenbridge serve --config bridge.yaml\n  queenbridge serve --only ingress",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(only); err != nil {
				return err
			}
			return p.serve(cmd.Context(), &s, only)
		},
	}
	s.bind(c.Flags())
	c.Flags().StringSliceVar(&only, "only", nil, "run only these: ingress, dispatch, admin (which the others always include)")
	return c
}

func checkOnly(only []string) error {
	for _, part := range only {
		if !slices.Contains(parts, part) {
			return &usageError{err: fmt.Errorf("--only must be ingress, dispatch or admin, got %q", part), hint: `run "queenbridge serve --help"`}
		}
	}
	return nil
}

// bridgeProcess is one running bridge: the parts and what they share.
type bridgeProcess struct {
	cfg      bridge.Config
	log      *slog.Logger
	aws      *aws.Session // of all that asks AWS
	reg      *prometheus.Registry
	traces   trace.TracerProvider // nil: attempts are not traced
	link     *queenLink
	conn     *connection
	ingress  *ingress.Server // nil: this process has none
	dispatch atomic.Pointer[dispatch.Dispatcher]
	routing  *liveRouting // of the dispatcher; nil: this process has none
	config   configfile.Result
	rules    *rules.Store
	follower *follower
	referred *referredFiles
	stopping atomic.Bool
	addrs    addrs
	started  func(addrs) // called once the listeners are open; may be nil
	terminal io.Writer   // for the eyes of the operator, past the log
	reload   *reloader   // nil: the configuration cannot change
}

// showSecret prints, once and past the log, a secret that a provider handed
// over.
func (b *bridgeProcess) showSecret(source, secret string) {
	_, _ = fmt.Fprintf(b.terminal, "\n  source %q was handed its secret; put it into its secrets, it is not shown again:\n\n      %s\n\n", source, secret)
}

// addrs are the listeners' addresses as they really are.
type addrs struct{ ingress, admin, queen net.Addr }

func (p *program) serve(ctx context.Context, s *settings, only []string) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	defer signal.Stop(asked)
	config, err := p.read(ctx, s)
	if err != nil {
		return err
	}
	cfg := config.Config
	b := &bridgeProcess{cfg: cfg, config: config, log: newLogger(p.err, cfg.Log), reg: newRegistry(), terminal: p.err, aws: p.aws}
	b.reload = &reloader{
		load:  func() (configfile.Result, error) { return loadConfig(ctx, p.aws, s) },
		asked: asked, running: cfg, log: b.log,
	}
	warn(b.log, config)
	traces, flush, err := startTracing(ctx, p.env, b.log, cfg.StopTimeout)
	if err != nil {
		return err
	}
	defer flush()
	if traces != nil {
		b.traces = traces
	}
	return b.run(ctx, only)
}

func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "queenbridge_build_info", Help: "Always 1; the version is its label.",
		ConstLabels: prometheus.Labels{"version": versionText()},
	})
	info.Set(1)
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info)
	return reg
}

// run opens everything, then blocks until ctx ends and all has drained. The
// admin listener outlives the others, so that a stopping bridge can be asked.
func (b *bridgeProcess) run(ctx context.Context, only []string) error {
	wants := func(part string) bool { return len(only) == 0 || slices.Contains(only, part) }
	link, err := openQueen(b.cfg.Queen, b.log)
	if err != nil {
		return err
	}
	defer link.close()
	b.link, b.conn = link, newConnection(link.client, link.where, b.log)
	if err := b.openRules(ctx); err != nil {
		return err
	}
	api, err := b.adminAPI(wants)
	if err != nil {
		return err
	}
	if b.reload != nil {
		b.reload.access = api.Retoken
	}
	services, err := b.services(ctx, wants)
	if err != nil {
		return err
	}
	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()
	admin, err := listen(ctx, "admin.addr", b.cfg.Admin.Addr)
	if err != nil {
		return err
	}
	if b.started != nil {
		b.addrs.admin = admin.Addr()
		b.started(b.addrs)
	}
	checks := b.checks(wants)
	b.reg.MustRegister(newReadiness(adminCtx, checks))
	adminDone := make(chan error, 1)
	go func() {
		adminDone <- serveHTTP(adminCtx, admin, adminHandler(adminParts{b.reg, checks, api}), time.Second)
	}()
	b.log.Info("admin listening", "url", "http://"+admin.Addr().String())
	context.AfterFunc(ctx, func() {
		b.stopping.Store(true)
		b.log.Info("stopping: taking nothing new, finishing what runs", "within", b.cfg.StopTimeout)
	})
	err = runServices(ctx, services...)
	stopAdmin()
	err = errors.Join(err, <-adminDone)
	b.log.Info("stopped")
	return err
}

// services are the parts asked for, their listeners open.
func (b *bridgeProcess) services(ctx context.Context, wants func(string) bool) ([]service, error) {
	var all []service
	if wants("dispatch") {
		// What a target of the file names must be there: its certificates.
		if err := (&liveRouting{newSender: b.newSenders(ctx)}).apply(routing{targets: b.cfg.Targets}); err != nil {
			return nil, &usageError{err: err}
		}
	}
	if b.link.broker != nil && b.cfg.Queen.EmbeddedAddr != "" {
		l, err := listen(ctx, "queen.embedded_addr", b.cfg.Queen.EmbeddedAddr)
		if err != nil {
			return nil, err
		}
		b.addrs.queen = l.Addr()
		b.log.Info("embedded broker listening", "url", "http://"+l.Addr().String())
		all = append(all, service{"embedded broker", func(ctx context.Context) error {
			return serveHTTP(ctx, l, b.link.broker, time.Second)
		}})
	}
	if wants("ingress") {
		s, err := b.ingressService(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if wants("dispatch") {
		c := b.rules.Catalog()
		b.routing = &liveRouting{newSender: b.newSenders(ctx), now: routing{c.Config.Routes, c.Config.Targets, namesOf(c.DrainingRoutes())}}
		b.follower.routing = b.routing.update
	}
	for _, f := range []func(*rules.Catalog){b.follower.follow, b.referred.follow} {
		b.rules.Subscribe(f)
		f(b.rules.Catalog()) // what came since the parts were made
	}
	all = append(all, service{"rules", b.rules.Run},
		service{"queues", func(ctx context.Context) error { return b.follower.run(ctx, b.conn.configure) }})
	if b.reload != nil {
		b.reload.follow = b.rules.SetFile
		b.reload.stored, b.reload.named = b.referred.files, b.referred.changed
		if b.link.broker == nil {
			b.reload.token = b.link.setToken
		}
		all = append(all, service{"configuration", b.reload.run})
	}
	return append(all, service{"dispatch", b.dispatchService}), nil
}

// listenURL is where the listener is reached on this machine.
func listenURL(c bridge.IngressTLS, addr net.Addr) string {
	if c.Cert != "" {
		return "https://" + addr.String()
	}
	return "http://" + addr.String()
}

func (b *bridgeProcess) ingressService(ctx context.Context) (service, error) {
	server, err := ingress.New(ingress.Config{
		Sources: b.follower.applied.Sources, Settings: b.cfg.Ingress, Queen: b.link.client,
		Expected: b.expects,
		Logger:   b.log, Metrics: b.reg, StopTimeout: b.cfg.StopTimeout, ShowSecret: b.showSecret,
	})
	if err != nil {
		return service{}, unusable(err, "ingress.spool.dir")
	}
	if err := server.CheckTLS(); err != nil {
		return service{}, &usageError{err: err, hint: "ingress.tls names PEM files that this user can read: the certificate with its chain, and its key"}
	}
	b.follower.sources = server.Update
	l, err := listen(ctx, "ingress.addr", b.cfg.Ingress.Addr)
	if err != nil {
		return service{}, err
	}
	b.addrs.ingress, b.ingress = l.Addr(), server
	b.log.Info("ingress listening", "url", listenURL(b.cfg.Ingress.TLS, l.Addr()), "sources", len(b.follower.applied.Sources))
	return service{"ingress", func(ctx context.Context) error { return server.Run(ctx, l) }}, nil
}

// expects says that there is, or may be, a stored source of a name that is not in
// use.
func (b *bridgeProcess) expects(source string) bool {
	c := b.rules.Catalog()
	_, stored := c.Entry(bridge.Resource{Kind: bridge.KindSource, Name: source})
	return stored || c.Synced.IsZero()
}

// dispatchService connects, sets up the queues and, when asked to, dispatches.
func (b *bridgeProcess) dispatchService(ctx context.Context) error {
	health, err := b.conn.establish(ctx)
	if err != nil {
		return err
	}
	if b.routing == nil {
		if err := b.conn.configure(ctx, b.rules.Catalog().Config.ManagedQueues()); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	d, err := b.routing.begin(ctx, b.setUp, func(r routing) (*dispatch.Dispatcher, error) { return b.newDispatcher(r, health) })
	if err != nil {
		return err
	}
	b.dispatch.Store(d)
	return d.Run(ctx)
}

// setUp configures the queues of the bridge with this routing.
func (b *bridgeProcess) setUp(ctx context.Context, r routing) error {
	cfg := b.rules.Catalog().Config
	cfg.Routes = r.routes
	return b.conn.configure(ctx, cfg.ManagedQueues())
}

func (b *bridgeProcess) newDispatcher(r routing, health queen.Health) (*dispatch.Dispatcher, error) {
	return dispatch.New(dispatch.Config{
		Routes: r.routes, Targets: r.targets, Settings: b.cfg.Dispatch,
		Queen: b.link.client, Health: health, NewSender: b.routing.newSender,
		Setup: func(ctx context.Context, r bridge.Route) error {
			return b.conn.configure(ctx, bridge.Config{Routes: []bridge.Route{r}}.ManagedQueues())
		},
		Logger: b.log, Metrics: b.reg, TracerProvider: b.traces, StopTimeout: b.cfg.StopTimeout,
	})
}

// newSenders makes the Senders of targets; they share their AWS credentials.
func (b *bridgeProcess) newSenders(ctx context.Context) func(bridge.Target) (dispatch.Sender, error) {
	return func(t bridge.Target) (dispatch.Sender, error) {
		if t.Lambda != nil {
			return b.newLambdaSender(ctx, t)
		}
		return httptarget.New(t, httptarget.Options{
			UserAgent: "queenbridge/" + versionText(), Logger: b.log,
			SigV4: func(a bridge.Auth) (httptarget.RequestSigner, error) {
				return aws.NewSigner(ctx, aws.SignerConfig{
					Session: b.aws, Service: a.Service, Region: a.Region, AssumeRole: a.AssumeRole, Endpoint: t.HTTP.URL,
				})
			},
		})
	}
}

// spools says that webhooks are answered 2xx although Queen is away: then a
// balancer must go on sending them here.
func (b *bridgeProcess) spools(context.Context) bool {
	return b.ingress != nil && b.ingress.SpoolsAll()
}

// accepts says that webhooks are answered 2xx: what is wrong with deliveries
// must not turn them away.
func (b *bridgeProcess) accepts(ctx context.Context) bool {
	return b.spools(ctx) || b.ingress != nil && b.dispatch.Load() != nil && b.conn.ready(ctx) == ""
}

// checks are what /readyz asks.
func (b *bridgeProcess) checks(wants func(string) bool) []check {
	all := []check{
		{name: "bridge", wrong: func(context.Context) string {
			if b.stopping.Load() {
				return "stopping"
			}
			return ""
		}},
		{"queen", b.conn.ready, b.spools},
		{"rules", func(context.Context) string {
			if b.rules.Catalog().Synced.IsZero() {
				return "the stored ones are not read yet"
			}
			return ""
		}, b.spools},
		{"stored rules", func(context.Context) string { return strings.Join(b.rules.Notes(), "; ") },
			func(context.Context) bool { return true }},
	}
	if wants("dispatch") {
		problems := func(list func(*dispatch.Dispatcher) []string, none string) func(context.Context) string {
			return func(context.Context) string {
				if d := b.dispatch.Load(); d != nil {
					return strings.Join(list(d), "; ")
				}
				return none
			}
		}
		all = append(all, check{"dispatch", problems((*dispatch.Dispatcher).Problems, "waiting for Queen"), b.accepts},
			check{"pauses", problems((*dispatch.Dispatcher).Degraded, ""), func(context.Context) bool { return true }})
	}
	return all
}
