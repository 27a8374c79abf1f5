package deploy_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const (
	secret = "s3cret of the smoke test"
	user   = 65532
)

// config is one source.
const config = `
sources:
  - name: github
    scheme: github
    secrets: ["${env:GITHUB_WEBHOOK_SECRET}"]
`

// images is a store of images that goes with the test.
type images struct {
	t    *testing.T
	args []string
}

func newImages(t *testing.T) images {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("buildah is run as root here")
	}
	dir := t.TempDir()
	s := images{t, []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}}
	t.Cleanup(func() { _ = s.command("rm", "--all").Run() })
	return s
}

func (s images) command(args ...string) *exec.Cmd {
	return exec.Command(tool(s.t, "buildah", "BUILDAH"), append(slices.Clone(s.args), args...)...)
}

func (s images) run(args ...string) string {
	s.t.Helper()
	return strings.TrimSpace(output(s.t, s.command(args...)))
}

// goEnv is a variable of the go command.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(output(t, exec.Command("go", "env", name)))
}

// builder makes the stand-in for the image of Go that the Dockerfile builds
// in: a shell from busybox. The toolchain and the caches are this machine's.
func (s images) builder() (volumes []string) {
	s.t.Helper()
	dir := s.t.TempDir()
	shell, err := os.ReadFile(tool(s.t, "busybox", "BUSYBOX"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"sh", "mkdir", "cp", "echo"} {
		s.write(filepath.Join(dir, "bin", name), shell, 0o755)
	}
	s.write(filepath.Join(dir, "tmp", ".keep"), nil, 0o644)
	s.write(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY bin /bin/\nCOPY tmp /tmp/\n"+
		"ENV PATH=/usr/local/go/bin:/bin GOPATH=/go GOCACHE=/cache\n"), 0o644)
	s.run("bud", "--isolation", "chroot", "-t", "builder", dir)
	return []string{
		"-v", goEnv(s.t, "GOROOT") + ":/usr/local/go:ro", "-v", goEnv(s.t, "GOMODCACHE") + ":/go/pkg/mod",
		"-v", goEnv(s.t, "GOCACHE") + ":/cache", "-v", "/etc/ssl/certs:/etc/ssl/certs:ro",
	}
}

func (s images) write(path string, content []byte, mode fs.FileMode) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		s.t.Fatal(err)
	}
}

// build builds a target of the Dockerfile as it is.
func (s images) build(target string, volumes []string) {
	s.t.Helper()
	args := append([]string{"bud", "--isolation", "chroot", "--layers", "--build-arg", "BUILD=localhost/builder", "--build-arg", "VERSION=v1.2.3-test",
		"-f", filepath.Join(root, "deploy/docker/Dockerfile"), "--target", target, "-t", target}, volumes...)
	s.run(append(args, root)...)
}

// imageConfig is what an image says of itself.
type imageConfig struct {
	User                 string
	Env, Entrypoint, Cmd []string
	Volumes              map[string]struct{}
}

func (s images) config(image string) imageConfig {
	s.t.Helper()
	var inspected struct {
		OCIv1 struct{ Config imageConfig }
	}
	if err := json.Unmarshal([]byte(s.run("inspect", "--type", "image", image)), &inspected); err != nil {
		s.t.Fatal(err)
	}
	return inspected.OCIv1.Config
}

// container is a container of an image, with its folder on this machine.
func (s images) container(image string) (name, folder string) {
	s.t.Helper()
	name = s.run("from", image)
	return name, s.run("mount", name)
}

// mounts are the folders a user mounts: the configuration and the data.
func (s images) mounts() (etc, data string) {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "queenbridge-mounts") // t.TempDir is closed to others
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	etc, data = filepath.Join(dir, "etc"), filepath.Join(dir, "data")
	s.write(filepath.Join(etc, "bridge.yaml"), []byte(config), 0o644)
	if err := os.Mkdir(data, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chown(data, user, user); err != nil {
		s.t.Fatal(err)
	}
	return etc, data
}

var settings = []string{
	"GITHUB_WEBHOOK_SECRET=" + secret, "QUEENBRIDGE_QUEEN_EMBEDDED=/data/queen",
	"QUEENBRIDGE_INGRESS_ADDR=127.0.0.1:0", "QUEENBRIDGE_ADMIN_ADDR=127.0.0.1:0",
}

// TestImage builds the image and runs it twice on the same data: as buildah
// runs it, until it is killed, and on a read-only root.
func TestImage(t *testing.T) {
	s := newImages(t)
	volumes := s.builder()
	s.build("bridge", volumes)
	c := s.config("bridge")
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/queenbridge"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("the image runs %q %q as %q", c.Entrypoint, c.Cmd, c.User)
	}
	name, folder := s.container("bridge")
	holds(t, folder, "data", "etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "queenbridge")
	etc, data := s.mounts()

	args := []string{"run", "--isolation", "chroot", "-v", data + ":/data", "-v", etc + ":/etc/queenbridge:ro"}
	for _, variable := range settings {
		args = append(args, "-e", variable)
	}
	first := start(t, s.command(append(append(append(args, name, "--"), c.Entrypoint...), c.Cmd...)...))
	if status, _ := get(t, first.admin()+"/livez"); status != 200 {
		t.Errorf("/livez answers %d", status)
	}
	smoke(t, first)
	if _, metrics := get(t, first.admin()+"/metrics"); !strings.Contains(metrics, `queenbridge_build_info{version="v1.2.3-test"} 1`) {
		t.Error("the image does not know its version")
	}
	first.kill(t)

	second := start(t, readOnly(folder, etc, data, c))
	smoke(t, second)
	second.stop(t)
	t.Run("lambda", func(t *testing.T) { lambdaImage(t, images{t, s.args}, volumes) })
}

// readOnly runs the image's program on a root that nothing can be written to,
// as the image's user, with nothing but its environment.
func readOnly(folder, etc, data string, c imageConfig) *exec.Cmd {
	script := `
		mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"
		mount --bind "$2" "$1/etc/queenbridge"; mount -o remount,ro,bind "$1/etc/queenbridge"
		mount --bind "$3" "$1/data"
		root=$1; shift 3
		exec env -i "$@"`
	args := []string{"--mount", "sh", "-ec", script, "sh", folder, etc, data}
	args = append(append(append(args, c.Env...), settings...), "/usr/sbin/chroot", "--userspec="+c.User, folder)
	return exec.Command("unshare", append(append(args, c.Entrypoint...), c.Cmd...)...)
}

// holds compares the files of an image, and who may write to them.
func holds(t *testing.T, folder string, want ...string) {
	t.Helper()
	var got []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(folder, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; rel != "data" && (owner != 0 || info.Mode().Perm()&0o022 != 0) {
			t.Errorf("%s: mode %s of user %d: others than root may write to it", rel, info.Mode(), owner)
		}
		if !d.IsDir() || rel == "data" {
			got = append(got, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the image holds %q, want %q", got, want)
	}
}

// lambdaImage builds the function's image. What the program does in Lambda is
// tested with its package; here it must start and find its configuration.
func lambdaImage(t *testing.T, s images, volumes []string) {
	s.build("lambda", volumes)
	c := s.config("lambda")
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/queenbridge-lambda"}) {
		t.Errorf("the image runs %q as %q", c.Entrypoint, c.User)
	}
	name, folder := s.container("lambda")
	holds(t, folder, "bridge.yaml", "etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "queenbridge-lambda")
	out, err := s.command("run", "--isolation", "chroot", "-e", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:9", name, "--", "/queenbridge-lambda").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "GITHUB_WEBHOOK_SECRET") {
		t.Errorf("without its secret the function says %s", out)
	}
}
