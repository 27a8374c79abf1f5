package deploy_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// serviceMonitor are the fields of the Prometheus operator's type that the
// chart uses (monitoring.coreos.com/v1, its API reference).
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// workload is a Deployment or a StatefulSet.
type workload struct {
	kind     string
	meta     metav1.ObjectMeta
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
	service  string // of a StatefulSet
	claims   []corev1.PersistentVolumeClaim
}

// objects are what a chart rendered, by name.
type objects struct {
	workloads  map[string]workload
	services   map[string]corev1.Service
	configMaps map[string]corev1.ConfigMap
	accounts   map[string]corev1.ServiceAccount
	policies   []networkingv1.NetworkPolicy
	budgets    []policyv1.PodDisruptionBudget
	scalers    []autoscalingv2.HorizontalPodAutoscaler
	ingresses  []networkingv1.Ingress
	monitors   []serviceMonitor
}

// decodeAll decodes every document into its type of Kubernetes: a field that
// does not exist there fails.
func decodeAll(t *testing.T, manifests []byte) objects {
	t.Helper()
	o := objects{
		workloads: make(map[string]workload), services: make(map[string]corev1.Service),
		configMaps: make(map[string]corev1.ConfigMap), accounts: make(map[string]corev1.ServiceAccount),
	}
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		if len(bytes.TrimSpace(document)) > 0 {
			o.decode(t, document)
		}
	}
	return o
}

func strict[T any](t *testing.T, document []byte) (v T) {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, &v); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	return v
}

func (o *objects) decode(t *testing.T, document []byte) {
	t.Helper()
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(document, &meta); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	switch kind := meta.APIVersion + " " + meta.Kind; kind {
	case "apps/v1 Deployment":
		d := strict[appsv1.Deployment](t, document)
		o.workloads[d.Name] = workload{meta.Kind, d.ObjectMeta, d.Spec.Selector, d.Spec.Template, "", nil}
	case "apps/v1 StatefulSet":
		s := strict[appsv1.StatefulSet](t, document)
		o.workloads[s.Name] = workload{meta.Kind, s.ObjectMeta, s.Spec.Selector, s.Spec.Template, s.Spec.ServiceName, s.Spec.VolumeClaimTemplates}
	case "v1 Service":
		s := strict[corev1.Service](t, document)
		o.services[s.Name] = s
	case "v1 ConfigMap":
		c := strict[corev1.ConfigMap](t, document)
		o.configMaps[c.Name] = c
	case "v1 ServiceAccount":
		a := strict[corev1.ServiceAccount](t, document)
		o.accounts[a.Name] = a
	case "networking.k8s.io/v1 NetworkPolicy":
		o.policies = append(o.policies, strict[networkingv1.NetworkPolicy](t, document))
	case "policy/v1 PodDisruptionBudget":
		o.budgets = append(o.budgets, strict[policyv1.PodDisruptionBudget](t, document))
	case "autoscaling/v2 HorizontalPodAutoscaler":
		o.scalers = append(o.scalers, strict[autoscalingv2.HorizontalPodAutoscaler](t, document))
	case "networking.k8s.io/v1 Ingress":
		o.ingresses = append(o.ingresses, strict[networkingv1.Ingress](t, document))
	case "monitoring.coreos.com/v1 ServiceMonitor":
		o.monitors = append(o.monitors, strict[serviceMonitor](t, document))
	default:
		t.Fatalf("no type for %s", kind)
	}
}

// selected are the workloads whose pods have these labels.
func (o *objects) selected(t *testing.T, selector labels.Selector) []workload {
	t.Helper()
	var all []workload
	for _, w := range o.workloads {
		if selector.Matches(labels.Set(w.template.Labels)) {
			all = append(all, w)
		}
	}
	return all
}

func (o *objects) selectedBy(t *testing.T, s *metav1.LabelSelector) []workload {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return o.selected(t, selector)
}

func portNames(w workload) []string {
	var names []string
	for _, p := range w.template.Spec.Containers[0].Ports {
		names = append(names, p.Name)
	}
	return names
}

// checkServices: a service has the pods of one workload, which have its port.
func (o *objects) checkServices(t *testing.T) {
	for name, s := range o.services {
		to := o.selected(t, labels.SelectorFromSet(s.Spec.Selector))
		if len(to) != 1 || !slices.Contains(portNames(to[0]), s.Spec.Ports[0].TargetPort.String()) {
			t.Errorf("service %s reaches %d workloads", name, len(to))
		}
	}
	for _, i := range o.ingresses {
		b := i.Spec.Rules[0].HTTP.Paths[0].Backend.Service
		if s := o.services[b.Name]; len(s.Spec.Ports) == 0 || s.Spec.Ports[0].Name != b.Port.Name {
			t.Errorf("ingress names the service %s, port %s", b.Name, b.Port.Name)
		}
	}
	for _, m := range o.monitors {
		selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, s := range o.services {
			if selector.Matches(labels.Set(s.Labels)) && s.Spec.Ports[0].Name == m.Spec.Endpoints[0].Port {
				found++
			}
		}
		if found != len(o.workloads) {
			t.Errorf("the monitor finds %d services for %d workloads", found, len(o.workloads))
		}
	}
}

// checkPolicies: budgets, scalers and network policies are of one workload.
func (o *objects) checkPolicies(t *testing.T) {
	for _, b := range o.budgets {
		if n := len(o.selectedBy(t, b.Spec.Selector)); n != 1 {
			t.Errorf("budget %s is of %d workloads", b.Name, n)
		}
	}
	for _, h := range o.scalers {
		if w := o.workloads[h.Spec.ScaleTargetRef.Name]; w.kind != h.Spec.ScaleTargetRef.Kind {
			t.Errorf("scaler %s is of a %s, which is a %q", h.Name, h.Spec.ScaleTargetRef.Kind, w.kind)
		}
	}
	for _, p := range o.policies {
		to := o.selectedBy(t, &p.Spec.PodSelector)
		if len(to) != 1 {
			t.Errorf("network policy %s is of %d workloads", p.Name, len(to))
			continue
		}
		for _, rule := range p.Spec.Ingress {
			if port := rule.Ports[0].Port.String(); !slices.Contains(portNames(to[0]), port) {
				t.Errorf("network policy %s opens the port %s", p.Name, port)
			}
		}
	}
}

// checkPods: what restricted pods must have, what a pod refers to, and that
// the ports are those the program is told to listen on.
func (o *objects) checkPods(t *testing.T) {
	for name, w := range o.workloads {
		pod, c := w.template.Spec, w.template.Spec.Containers[0]
		if to := o.selectedBy(t, w.selector); len(to) != 1 || to[0].meta.Name != name {
			t.Errorf("%s selects the pods of %d workloads", name, len(to))
		}
		if _, there := o.accounts[pod.ServiceAccountName]; !there {
			t.Errorf("%s has no service account %s", name, pod.ServiceAccountName)
		}
		if w.kind == "StatefulSet" && o.services[w.service].Spec.ClusterIP != "None" {
			t.Errorf("%s has no headless service %s", name, w.service)
		}
		restricted(t, name, pod)
		mounted(t, name, w)
		env := environment(c)
		for _, p := range c.Ports {
			variable := map[string]string{"http": "QUEENBRIDGE_INGRESS_ADDR", "admin": "QUEENBRIDGE_ADMIN_ADDR"}[p.Name]
			if env[variable] != fmt.Sprintf(":%d", p.ContainerPort) {
				t.Errorf("%s: the port %s is %d and %s is %s", name, p.Name, p.ContainerPort, variable, env[variable])
			}
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe.HTTPGet.Port.String() != "admin" || !slices.Contains([]string{"/livez", "/readyz"}, probe.HTTPGet.Path) {
				t.Errorf("%s: probe %v", name, probe)
			}
		}
		if grace := *pod.TerminationGracePeriodSeconds; fmt.Sprintf("%ds", grace-c.Lifecycle.PreStop.Sleep.Seconds-5) != env["QUEENBRIDGE_STOP_TIMEOUT"] {
			t.Errorf("%s is killed after %d s, while it may drain", name, grace)
		}
	}
}

// restricted are the rules of the Pod Security Standard of that name.
func restricted(t *testing.T, name string, pod corev1.PodSpec) {
	t.Helper()
	p, c := pod.SecurityContext, pod.Containers[0].SecurityContext
	if !*p.RunAsNonRoot || *p.RunAsUser != user || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
		*pod.AutomountServiceAccountToken || pod.HostNetwork || pod.HostPID {
		t.Errorf("%s has more rights than it needs", name)
	}
}

// mounted: every mount has its volume or claim, and what the environment names
// below /data is on it.
func mounted(t *testing.T, name string, w workload) {
	t.Helper()
	volumes := make(map[string]bool)
	for _, v := range w.template.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range w.claims {
		volumes[c.Name] = true
	}
	for _, m := range w.template.Spec.Containers[0].VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s mounts %s, which is not there", name, m.Name)
		}
	}
	if !slices.Contains(portNames(w), "http") {
		return // takes no webhooks, so it spools none
	}
	env := environment(w.template.Spec.Containers[0])
	for _, dir := range []string{env["QUEENBRIDGE_QUEEN_EMBEDDED"], env["QUEENBRIDGE_INGRESS_SPOOL_DIR"]} {
		if dir != "" && (!strings.HasPrefix(dir, "/data/") || len(w.claims) != 1) {
			t.Errorf("%s stores in %s, which does not last", name, dir)
		}
	}
}

// environment is a container's; secrets are there.
func environment(c corev1.Container) map[string]string {
	env := make(map[string]string)
	for _, v := range c.Env {
		switch from := v.ValueFrom; {
		case from == nil:
			env[v.Name] = v.Value
		case from.ResourceFieldRef != nil:
			env[v.Name] = fmt.Sprint(c.Resources.Limits.Memory().Value())
		default:
			env[v.Name] = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
		}
	}
	return env
}
