package configfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
)

// load writes text as a file and loads it.
func load(t *testing.T, text string, flags func(*bridge.Config)) (configfile.Result, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return configfile.Load(configfile.Options{Path: path, Flags: flags})
}

// lines are the problems without the directory of the test.
func lines(t *testing.T, err error) []string {
	t.Helper()
	var all *configfile.Error
	if !errors.As(err, &all) {
		t.Fatalf("Load = %v, want a *configfile.Error", err)
	}
	var got []string
	for line := range strings.Lines(all.Error()) {
		line = strings.TrimSpace(line)
		if dir, rest, ok := strings.Cut(line, "bridge.yaml"); ok && strings.HasPrefix(dir, "/") {
			line = "bridge.yaml" + rest
		}
		got = append(got, line)
	}
	return got
}

func TestPrintLoadsBack(t *testing.T) {
	t.Setenv("GITHUB_SECRET", "s3cret")
	t.Setenv("PORT_TEXT", "8090")
	t.Setenv("FIVE", "5")
	first, err := configfile.Load(configfile.Options{Path: "testdata/every-built-field.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"secret.txt", "whsec.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "printed.yaml")
	printed := first.Print()
	if err := os.WriteFile(path, printed, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := configfile.Load(configfile.Options{Path: path})
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	again.Config.Sources[1].MaxBody = first.Config.Sources[1].MaxBody // 0 is printed as what it stands for
	if diff := cmp.Diff(first.Config, again.Config, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := first.Config.Sources[0].Secrets[1].Reveal(); got != "s3cret" {
		t.Errorf("secret of a file = %q: one newline must go", got)
	}
	if got := first.Config.Targets[0].HTTP.URL; got != "https://ci.example.com/hook?code=${literal}" {
		t.Errorf("url = %q: $${ must be ${", got)
	}
}

func TestEnvironmentBeatsTheFile(t *testing.T) {
	t.Setenv("QUEENBRIDGE_INGRESS_ADDR", "127.0.0.1:1")
	t.Setenv("QUEENBRIDGE_INGRESS_BATCH_MAX_BYTES", "2MiB")
	t.Setenv("QUEENBRIDGE_INGRESS_ACCEPT_BUFFERED", "true")
	t.Setenv("QUEENBRIDGE_DISPATCH_MAX_IN_FLIGHT", "7")
	t.Setenv("QUEENBRIDGE_QUEEN_URLS", "http://a:1, http://b:2")
	t.Setenv("QUEENBRIDGE_QUEEN_TOKEN", "12345")
	t.Setenv("QUEENBRIDGE_STOP_TIMEOUT", "")
	t.Setenv("QUEEN_TOKEN", "not ours")
	t.Setenv("LOG_LEVEL", "not ours")
	r, err := load(t, "stop_timeout: 9s\ningress: {addr: ':5', max_in_flight: 3}\nqueen: {embedded: ./data}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Config
	got := []any{c.Ingress.Addr, c.Ingress.MaxInFlight, c.Ingress.Batch.MaxBytes, c.Ingress.AcceptBuffered, c.Dispatch.MaxInFlight,
		c.Queen.URLs, c.Queen.Embedded, c.Queen.Token.Reveal(), c.StopTimeout, c.Log.Level}
	want := []any{"127.0.0.1:1", 3, bridge.Size(2 << 20), true, 7, []string{"http://a:1", "http://b:2"}, "", "12345", 9 * time.Second, "info"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnvironmentProblemsNameTheVariable(t *testing.T) {
	t.Setenv("QUEENBRIDGE_STOP_TIMEOUT", "5")
	t.Setenv("QUEENBRIDGE_QUEEN_URLS", "http://a:1,queen")
	t.Setenv("QUEENBRIDGE_QUEEN_EMBEDDED", "memory")
	t.Setenv("QUEENBRIDGE_INGRESS_SPOOL_MAX_BYTES", "0B")
	t.Setenv("QUEENBRIDGE_ENCRYPTION_KEY", "s3cret")
	_, err := load(t, "log: {level: loud}\n", nil)
	want := []string{
		`bridge.yaml:1: log.level: must be debug, info, warn or error, got "loud"`,
		`QUEENBRIDGE_STOP_TIMEOUT: stop_timeout: must be a duration such as 30s, got "5"`,
		`QUEENBRIDGE_QUEEN_EMBEDDED: queen.embedded: excludes queen.urls: set one of them`,
		`QUEENBRIDGE_QUEEN_URLS: queen.urls[1]: must be a URL that begins with http:// or https:// and a host`,
		`QUEENBRIDGE_INGRESS_SPOOL_MAX_BYTES: ingress.spool.max_bytes: must be 1B or more, got 0B`,
		`QUEENBRIDGE_ENCRYPTION_KEY: must be the base64 of 32 bytes (or several, comma-separated, the newest first): make one with "openssl rand -base64 32"`,
	}
	if diff := cmp.Diff(want, lines(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A higher layer's word on where Queen is drops the lower one's.
func TestWhereQueenIs(t *testing.T) {
	tests := []struct {
		name, file, urls, embedded string
		wantURLs                   string
		wantEmbedded               string
	}{
		{"nothing", "", "", "", "http://127.0.0.1:6632", ""},
		{"file embedded", "queen: {embedded: memory}", "", "", "", "memory"},
		{"file empty embedded", `queen: {embedded: ""}`, "", "", "http://127.0.0.1:6632", ""},
		{"env urls beat embedded", "queen: {embedded: memory}", "http://a", "", "http://a", ""},
		{"env embedded beats urls", `queen: {urls: ["http://a"]}`, "", "./data", "", "./data"},
		{"env urls beat urls", `queen: {urls: ["http://a"]}`, "http://b", "", "http://b", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("QUEENBRIDGE_QUEEN_URLS", tt.urls)
			t.Setenv("QUEENBRIDGE_QUEEN_EMBEDDED", tt.embedded)
			r, err := load(t, tt.file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Config.Queen.URLs, ","); got != tt.wantURLs || r.Config.Queen.Embedded != tt.wantEmbedded {
				t.Errorf("urls %q, embedded %q, want %q, %q", got, r.Config.Queen.Embedded, tt.wantURLs, tt.wantEmbedded)
			}
		})
	}
}

func TestFlagsBeatEverything(t *testing.T) {
	t.Setenv("QUEENBRIDGE_INGRESS_ADDR", "127.0.0.1:1")
	t.Setenv("SOME_ADDR", "127.0.0.1:7")
	r, err := load(t, "admin: {addr: '${env:SOME_ADDR}'}\n", func(c *bridge.Config) {
		c.Ingress.Addr = "127.0.0.1:2"
		c.Admin.Addr = "127.0.0.1:3"
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Config.Ingress.Addr != "127.0.0.1:2" || !strings.Contains(string(r.Print()), `addr: "127.0.0.1:3"`) {
		t.Errorf("flags are lost:\n%s", r.Print())
	}
	_, err = load(t, "\n\nadmin: {addr: ':9', console: false}\n", func(c *bridge.Config) {
		c.Log.Level = "loud"
		c.Admin.Addr = "nowhere"
	})
	want := []string{
		`bridge.yaml:3: admin.console: the console is not built yet in this version`,
		`command line: log.level: must be debug, info, warn or error, got "loud"`,
		`command line: admin.addr: must be a listen address such as :8080 or 127.0.0.1:8080, got "nowhere"`,
	}
	if diff := cmp.Diff(want, lines(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyInTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "named.yaml")
	if err := os.WriteFile(path, []byte("admin: {addr: ':8081'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("QUEENBRIDGE_CONFIG", path)
	t.Setenv("QUEENBRIDGE_ADMIN_TOKEN", "s3cret")
	t.Setenv("QUEENBRIDGE_ENCRYPTION_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	r, err := configfile.Load(configfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Path != path || r.Config.Admin.EnvToken.Reveal() != "s3cret" || len(r.EncryptionKeys) != 1 || len(r.EncryptionKeys[0]) != 32 {
		t.Errorf("Load = path %q, token %v, %d keys", r.Path, r.Config.Admin.EnvToken, len(r.EncryptionKeys))
	}
	if strings.Contains(string(r.Print()), "s3cret") {
		t.Error("the token is printed")
	}
}

// Every process setting has its variable: QUEENBRIDGE_ and the path in upper
// case. Each is set in turn to a value that cannot be read or is refused, and
// the problem must name it.
func TestEverySettingHasItsVariable(t *testing.T) {
	// Texts that are neither checked nor refused arrive in the configuration.
	free := map[string]func(bridge.Config) string{
		"queen.embedded": func(c bridge.Config) string { return c.Queen.Embedded },
		"queen.token":    func(c bridge.Config) string { return c.Queen.Token.Reveal() },

		"ingress.spool.dir": func(c bridge.Config) string { return c.Ingress.Spool.Dir },
	}
	for _, path := range settings("", reflect.TypeFor[bridge.Config]()) {
		name := "QUEENBRIDGE_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
		t.Run(name, func(t *testing.T) {
			value := "wrong \n"
			if path == "admin.console" {
				value = "false"
			}
			t.Setenv(name, value)
			r, err := load(t, "", nil)
			if get, ok := free[path]; ok {
				if got := get(r.Config); err != nil || got != value {
					t.Errorf("%s = %q, %v, want %q", path, got, err, value)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), name+": "+path) {
				t.Errorf("Load with %s=%q = %v", name, value, err)
			}
		})
	}
}

// settings are the paths of all fields above sources.
func settings(path string, typ reflect.Type) []string {
	if typ.Kind() != reflect.Struct {
		return []string{path}
	}
	var all []string
	for i := range typ.NumField() {
		name := strings.TrimPrefix(path+"."+typ.Field(i).Tag.Get("json"), ".")
		switch name {
		case "sources", "targets", "routes", "queues", "admin.tokens", "admin.-":
		default:
			all = append(all, settings(name, typ.Field(i).Type)...)
		}
	}
	return all
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := configfile.Load(configfile.Options{})
	const want = `read configuration: bridge.yaml: file does not exist: name the file with --config or QUEENBRIDGE_CONFIG, or run "queenbridge dev" to try without one`
	if err == nil || err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v, want %s", err, want)
	}
	if _, err := configfile.Load(configfile.Options{Path: t.TempDir()}); err == nil {
		t.Error("a directory was read")
	}
	if _, err := load(t, "# "+strings.Repeat("x", 4<<20), nil); err == nil || !strings.Contains(err.Error(), "is larger than 4MiB") {
		t.Errorf("large file: %v", err)
	}
}

func TestDataInsteadOfAFile(t *testing.T) {
	r, err := configfile.Load(configfile.Options{Path: "built-in", Data: []byte("stop_timeout: 7s\n")})
	if err != nil || r.Config.StopTimeout != 7*time.Second || r.Path != "built-in" {
		t.Errorf("Load = %+v, %v", r, err)
	}
	r, err = configfile.Load(configfile.Options{Path: "built-in", Data: []byte("x: 1\n")})
	if err == nil || err.Error() != "built-in:1: x: is unknown" || r.Path != "built-in" {
		t.Errorf("Load = %+v, %v", r, err)
	}
}

func TestReferencedFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "large")
	if err := os.WriteFile(path, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := load(t, "queen: {token: '${file:"+path+"}'}\n", nil)
	if err == nil || !strings.Contains(err.Error(), "is larger than 1MiB") {
		t.Errorf("large secret: %v", err)
	}
}
