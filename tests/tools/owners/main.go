// Controllers of kinds that make Pods, in one process: JobSet's with its webhooks, Kubeflow Trainer's and KubeRay's. They are
// the projects' own, each in a manager of its own as in its own program; those programs serve probes and metrics, elect
// leaders and manage certificates too, which is not needed here.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	trainercontroller "github.com/kubeflow/trainer/v2/pkg/controller"
	trainerruntimes "github.com/kubeflow/trainer/v2/pkg/runtime/core"
	rayconfig "github.com/ray-project/kuberay/ray-operator/apis/config/v1alpha1"
	ray "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	raycontroller "github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/batchscheduler"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	jobsetcontrollers "sigs.k8s.io/jobset/pkg/controllers"
	jobsetwebhooks "sigs.k8s.io/jobset/pkg/webhooks"
	plugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

// Of the webhooks, if they are served.
var (
	port         int
	certificates string
)

func main() {
	// controller-runtime has a flag of this name in the set of the process.
	flags := flag.NewFlagSet("owners", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the cluster")
	flags.IntVar(&port, "webhook-port", 0, "port of 127.0.0.1 on which JobSet's webhooks are served")
	flags.StringVar(&certificates, "webhook-certificates", "", "folder with the webhooks' tls.crt and tls.key")
	klog.InitFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		klog.Fatalf("reading the flags: %v", err)
	}
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatalf("reading the kubeconfig: %v", err)
	}
	config.QPS, config.Burst = 500, 500
	ended := make(chan error)
	for name, prepare := range map[string]func(context.Context, *rest.Config) (ctrl.Manager, error){
		"jobset": jobSets, "trainer": trainJobs, "kuberay": rayClusters,
	} {
		config := rest.CopyConfig(config)
		config.UserAgent = name
		manager, err := prepare(ctx, config)
		if err != nil {
			klog.Fatalf("preparing the controllers of %s: %v", name, err)
		}
		go func() { ended <- manager.Start(ctx) }()
	}
	if err := <-ended; err != nil {
		klog.Fatalf("running the controllers: %v", err)
	}
}

func manager(config *rest.Config, options ctrl.Options, add ...func(*runtime.Scheme) error) (ctrl.Manager, error) {
	options.Scheme = runtime.NewScheme()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	for _, add := range append(add, scheme.AddToScheme) {
		if err := add(options.Scheme); err != nil {
			return nil, err
		}
	}
	return ctrl.NewManager(config, options)
}

func jobSets(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	var options ctrl.Options
	if port != 0 {
		options.WebhookServer = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certificates})
	}
	mgr, err := manager(config, options, jobset.AddToScheme)
	if err != nil {
		return nil, err
	}
	if err := jobsetcontrollers.SetupJobSetIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	if err := jobsetcontrollers.SetupPodIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	sets := jobsetcontrollers.NewJobSetReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorderFor("jobset"))
	if err := sets.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	pods := jobsetcontrollers.NewPodReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorderFor("pod"))
	if err := pods.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	if port == 0 {
		return mgr, nil
	}
	ofSets, err := jobsetwebhooks.NewJobSetWebhook(mgr.GetClient())
	if err != nil {
		return nil, err
	}
	if err := ofSets.SetupWebhookWithManager(mgr); err != nil {
		return nil, err
	}
	return mgr, jobsetwebhooks.NewPodWebhook(mgr.GetClient()).SetupWebhookWithManager(mgr)
}

func trainJobs(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	options := ctrl.Options{Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}}}
	mgr, err := manager(config, options, trainer.AddToScheme, jobset.AddToScheme, plugins.AddToScheme)
	if err != nil {
		return nil, err
	}
	runtimes, err := trainerruntimes.New(ctx, mgr.GetClient(), mgr.GetFieldIndexer())
	if err != nil {
		return nil, err
	}
	if failed, err := trainercontroller.SetupControllers(mgr, runtimes, controller.Options{}); err != nil {
		return nil, fmt.Errorf("%s: %w", failed, err)
	}
	return mgr, nil
}

func rayClusters(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	mgr, err := manager(config, ctrl.Options{}, ray.AddToScheme)
	if err != nil {
		return nil, err
	}
	var settings rayconfig.Configuration
	gangs, err := batchscheduler.NewSchedulerManager(ctx, settings, config, mgr.GetClient())
	if err != nil {
		return nil, err
	}
	ofClusters := raycontroller.RayClusterReconcilerOptions{BatchSchedulerManager: gangs}
	if err := raycontroller.NewReconciler(ctx, mgr, ofClusters).SetupWithManager(mgr, 1); err != nil {
		return nil, err
	}
	ofJobs := raycontroller.RayJobReconcilerOptions{BatchSchedulerManager: gangs}
	return mgr, raycontroller.NewRayJobReconciler(ctx, mgr, ofJobs, settings).SetupWithManager(mgr, 1)
}
