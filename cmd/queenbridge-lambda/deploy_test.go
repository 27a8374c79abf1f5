package main

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const deployDir = "../../deploy/lambda"

// archives builds both archives and returns their directory.
func archives(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("make", "-C", deployDir, "OUT="+dir).CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	return dir
}

// unpack returns the directory of an archive's files.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	r, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := t.TempDir()
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if f.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s: mode %s cannot be read by all", f.Name, f.Mode())
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), content, f.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTheArchivesWorkWithTheSmokeScript: what is uploaded runs, and the script
// says so. The function is behind a stand-in for its URL.
func TestTheArchivesWorkWithTheSmokeScript(t *testing.T) {
	t.Parallel()
	dir := archives(t)
	for arch, machine := range map[string]elf.Machine{"arm64": elf.EM_AARCH64, "amd64": elf.EM_X86_64} {
		program, err := elf.Open(filepath.Join(unpack(t, filepath.Join(dir, "queenbridge-lambda-"+arch+".zip")), "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		if program.Machine != machine {
			t.Errorf("%s: the program is for %s", arch, program.Machine)
		}
		_ = program.Close()
	}
	broker, client := serveBroker(t)
	files := unpack(t, filepath.Join(dir, "queenbridge-lambda-"+runtime.GOARCH+".zip"))
	const secret = "Zm9v bar'$&\""
	e := startEmulator(t, filepath.Join(files, "bootstrap"), 10, "QUEENBRIDGE_QUEEN_URLS="+broker, "GITHUB_WEBHOOK_SECRET="+secret)
	url := httptest.NewServer(&functionURL{emulator: e})
	defer url.Close()

	if out, err := smoke(url.URL+"/", secret); err != nil || !strings.Contains(out, "forged one: 401") {
		t.Errorf("smoke.sh: %v\n%s", err, out)
	}
	got := events(t, client, "github")
	if len(got) != 1 || string(got[0].Body) != `{"zen":"Approachable is better than simple.","text":"café + %2F"}` {
		t.Errorf("stored %+v, want the one signed webhook", got)
	}
	if out, err := smoke(url.URL, "another secret"); err == nil || !strings.Contains(out, "a signed webhook was answered 401, want 200") {
		t.Errorf("smoke.sh with another secret: %v\n%s", err, out)
	}
}

func smoke(url, secret string) (string, error) {
	c := exec.Command(filepath.Join(deployDir, "smoke.sh"), url)
	c.Env = append(os.Environ(), "GITHUB_WEBHOOK_SECRET="+secret)
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestAnArchiveIsTheSameForTheSameFiles: a deployment that changes nothing is
// seen to change nothing.
func TestAnArchiveIsTheSameForTheSameFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var first []byte
	for range 2 {
		archive := filepath.Join(dir, "a.zip")
		out, err := exec.Command("go", "run", "./pack", "-o", archive, "bootstrap=main.go", "bridge.yaml="+deployDir+"/bridge.yaml").CombinedOutput()
		if err != nil {
			t.Fatalf("pack: %v\n%s", err, out)
		}
		content, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, content) {
			t.Error("the archives differ")
		}
		first = content
	}
	if info, err := os.Stat(filepath.Join(unpack(t, filepath.Join(dir, "a.zip")), "bootstrap")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("bootstrap: %v, %v; want a program", info, err)
	}
}

// functionURL stands for a function URL: requests become events of payload
// format 2.0, one at a time.
type functionURL struct {
	mu       sync.Mutex
	emulator *emulator
}

func (f *functionURL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	headers := map[string]string{"host": r.Host}
	for name, values := range maps.All(r.Header) {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	event, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": r.URL.EscapedPath(), "rawQueryString": r.URL.RawQuery, "headers": headers,
		"requestContext": map[string]any{"stage": "$default", "http": map[string]any{"method": r.Method, "sourceIp": "203.0.113.7"}},
		"body":           string(body), "isBase64Encoded": false,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	f.mu.Lock()
	doc, err := f.emulator.Invoke(event)
	f.mu.Unlock()
	var answer struct {
		StatusCode int
		Headers    map[string]string
		Body       string
	}
	if err != nil || json.Unmarshal(doc, &answer) != nil {
		http.Error(w, string(doc), http.StatusBadGateway)
		return
	}
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.WriteString(w, answer.Body)
}
