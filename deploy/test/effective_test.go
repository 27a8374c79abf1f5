package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// notInFile are the variables that are no settings of the file.
var notInFile = []string{"QUEENBRIDGE_CONFIG", "QUEENBRIDGE_ADMIN_TOKEN", "QUEENBRIDGE_ENCRYPTION_KEY", "QUEENBRIDGE_ENDPOINT", "QUEENBRIDGE_TOKEN"}

// effective lets the program read a configuration in an environment, and
// proves that it takes the configuration and that each variable
// QUEENBRIDGE_… is one it knows: the setting of that path has its value.
func effective(t *testing.T, config []byte, env map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "bridge.yaml")
	if err := os.WriteFile(path, filesIn(t, dir, config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "config", "print", path)
	cmd.Env = []string{"PATH=/nonexistent"}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var printed map[string]any
	if err := yaml.UnmarshalStrict([]byte(output(t, cmd)), &printed); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	flatten("QUEENBRIDGE", printed, got)
	for name, value := range env {
		if !strings.HasPrefix(name, "QUEENBRIDGE_") || slices.Contains(notInFile, name) {
			continue
		}
		if has, known := got[name]; !known || !same(has, value) && has != "***" {
			t.Errorf("%s=%s: the program has %q", name, value, has)
		}
	}
	return got
}

// same compares two values of a setting: 60s is 1m.
func same(a, b string) bool {
	first, err := time.ParseDuration(a)
	second, err2 := time.ParseDuration(b)
	return a == b || err == nil && err2 == nil && first == second
}

// filesIn stands files in dir in for those that a configuration refers to.
func filesIn(t *testing.T, dir string, config []byte) []byte {
	t.Helper()
	text, n := string(config), 0
	for rest := text; ; n++ {
		_, after, found := strings.Cut(rest, "${file:")
		if !found {
			return []byte(text)
		}
		name, tail, _ := strings.Cut(after, "}")
		rest = tail
		file := filepath.Join(dir, fmt.Sprintf("secret-%d", n))
		if err := os.WriteFile(file, []byte("secret-of-a-file"), 0o600); err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, "${file:"+name+"}", "${file:"+file+"}", 1)
	}
}

// flatten names every process setting as its variable.
func flatten(prefix string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			flatten(prefix+"_"+strings.ToUpper(key), value, into)
		}
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, fmt.Sprint(item))
		}
		into[prefix] = strings.Join(items, ",")
	default:
		into[prefix] = fmt.Sprint(v)
	}
}
