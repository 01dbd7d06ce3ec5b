// The verdicts of kube-scheduler's filters, without a cluster.
//
// Each line of the input is a JSON object: "objects" are the nodes, the Pods on them, namespaces and storage objects of
// a cluster, and "pods" are Pods that are asked about, one by one. Each line of the output is a list of objects, one for
// each of those Pods: why each node is not feasible for it (the plugin and its message), by name; empty if it is.
//
// The plugins are those of kube-scheduler's default profile, without DynamicResources, and run as kube-scheduler runs
// them. Many lines share one set of informers, so the names of nodes and storage objects must be different in all lines,
// and namespaces of one name the same.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// together is the number of lines that share informers.
const together = 250

type line struct {
	Objects []runtime.RawExtension `json:"objects"`
	Pods    []*v1.Pod              `json:"pods"`
}

// question is a line with its objects decoded.
type question struct {
	nodes   []*v1.Node
	running []*v1.Pod
	others  []runtime.Object
	pods    []*v1.Pod
}

// current is the snapshot of the line that is being answered.
type current struct {
	fwk.SharedLister
}

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	metrics.Register()
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	lines := json.NewDecoder(bufio.NewReader(input))
	answers := bufio.NewWriter(output)
	for more := true; more; {
		var questions []question
		for len(questions) < together {
			var next line
			if err := lines.Decode(&next); errors.Is(err, io.EOF) {
				more = false
				break
			} else if err != nil {
				return fmt.Errorf("reading the input: %w", err)
			}
			decoded, err := decode(next)
			if err != nil {
				return err
			}
			questions = append(questions, decoded)
		}
		if err := answerAll(questions, json.NewEncoder(answers)); err != nil {
			return err
		}
		if err := answers.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func decode(from line) (question, error) {
	decoded := question{pods: from.Pods}
	for _, raw := range from.Objects {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Raw, nil, nil)
		if err != nil {
			return decoded, fmt.Errorf("decoding %s: %w", raw.Raw, err)
		}
		switch object := object.(type) {
		case *v1.Node:
			decoded.nodes = append(decoded.nodes, object)
		case *v1.Pod:
			// kube-scheduler doesn't watch Pods that have ended.
			if object.Status.Phase != v1.PodSucceeded && object.Status.Phase != v1.PodFailed {
				decoded.running = append(decoded.running, object)
			}
		default:
			decoded.others = append(decoded.others, object)
		}
	}
	return decoded, nil
}

func answerAll(questions []question, answers *json.Encoder) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client := fake.NewSimpleClientset()
	add := func(object runtime.Object) error {
		if err := client.Tracker().Add(object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("adding an object: %w", err)
		}
		return nil
	}
	for _, question := range questions {
		for _, object := range question.others {
			if err := add(object); err != nil {
				return err
			}
		}
		for _, node := range question.nodes {
			if err := add(node); err != nil {
				return err
			}
		}
	}
	snapshot := &current{SharedLister: cache.NewEmptySnapshot()}
	factory := informers.NewSharedInformerFactory(client, 0)
	profile, err := defaultProfile()
	if err != nil {
		return err
	}
	scheduler, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(cache.New(ctx, nil, false, false)),
	)
	if err != nil {
		return fmt.Errorf("creating the framework: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := waitUntilHeard(ctx, client, scheduler, snapshot); err != nil {
		return err
	}
	for _, question := range questions {
		snapshot.SharedLister = cache.NewSnapshot(question.running, question.nodes)
		verdicts := []map[string]string{}
		for _, pod := range question.pods {
			verdict, err := ask(ctx, scheduler, pod, question.nodes)
			if err != nil {
				return fmt.Errorf("Pod %s: %w", pod.Name, err)
			}
			verdicts = append(verdicts, verdict)
		}
		if err := answers.Encode(verdicts); err != nil {
			return err
		}
	}
	return nil
}

// defaultProfile is that of kube-scheduler, without the plugin that needs the devices of nodes.
func defaultProfile() (*config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("reading the default configuration: %w", err)
	}
	profile := &defaults.Profiles[0]
	enabled := &profile.Plugins.MultiPoint.Enabled
	*enabled = slices.DeleteFunc(*enabled, func(plugin config.Plugin) bool { return plugin.Name == names.DynamicResources })
	return profile, nil
}

// ask runs the filters as kube-scheduler does for a Pod without a nominated node.
func ask(ctx context.Context, scheduler framework.Framework, pod *v1.Pod, nodes []*v1.Node) (map[string]string, error) {
	verdict := map[string]string{}
	state := framework.NewCycleState()
	among, status, _ := scheduler.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	for _, node := range nodes {
		if !status.IsSuccess() {
			verdict[node.Name] = reason(status)
			continue
		}
		if !among.AllNodes() && !among.NodeNames.Has(node.Name) {
			verdict[node.Name] = "PreFilter: not among the nodes"
			continue
		}
		info, err := scheduler.SnapshotSharedLister().NodeInfos().Get(node.Name)
		if err != nil {
			return nil, err
		}
		filtered := scheduler.RunFilterPlugins(ctx, state, pod, info)
		if !filtered.IsSuccess() && !filtered.IsRejected() {
			return nil, filtered.AsError()
		}
		verdict[node.Name] = ""
		if !filtered.IsSuccess() {
			verdict[node.Name] = reason(filtered)
		}
	}
	return verdict, nil
}

func reason(status *fwk.Status) string {
	return status.Plugin() + ": " + status.Message()
}

// waitUntilHeard waits until the plugins' caches, which follow the informers, have everything that the informers have:
// each hears of objects in order, so it asks about a Pod whose claim and volume are the last.
func waitUntilHeard(ctx context.Context, client *fake.Clientset, scheduler framework.Framework, snapshot *current) error {
	const name = "the-last"
	meta := metav1.ObjectMeta{Name: name, Namespace: "default", UID: name}
	storage := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	class := ""
	claim := &v1.PersistentVolumeClaim{ObjectMeta: meta, Spec: v1.PersistentVolumeClaimSpec{
		StorageClassName: &class, VolumeName: name, AccessModes: modes,
		Resources: v1.VolumeResourceRequirements{Requests: storage},
	}}
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: name}, Spec: v1.PersistentVolumeSpec{
		Capacity: storage, AccessModes: modes,
		ClaimRef: &v1.ObjectReference{Namespace: "default", Name: name, UID: name},
	}}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{
		Allocatable: v1.ResourceList{v1.ResourcePods: resource.MustParse("1")},
	}}
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	storageClass := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	create := metav1.CreateOptions{}
	_, nodeFailed := client.CoreV1().Nodes().Create(ctx, node, create)
	_, volumeFailed := client.CoreV1().PersistentVolumes().Create(ctx, volume, create)
	_, claimFailed := client.CoreV1().PersistentVolumeClaims("default").Create(ctx, claim, create)
	_, csiFailed := client.StorageV1().CSINodes().Create(ctx, csi, create)
	_, classFailed := client.StorageV1().StorageClasses().Create(ctx, storageClass, create)
	if err := errors.Join(nodeFailed, volumeFailed, claimFailed, csiFailed, classFailed); err != nil {
		return fmt.Errorf("adding the last objects: %w", err)
	}
	pod := &v1.Pod{ObjectMeta: meta, Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}}}
	nodes := []*v1.Node{node}
	snapshot.SharedLister = cache.NewSnapshot(nil, nodes)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		verdict, err := ask(ctx, scheduler, pod, nodes)
		if err == nil && verdict[name] == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the plugins did not hear of the objects: %v, %w", verdict, err)
		}
	}
}
