package deploy_test

// As much of Kubernetes as the manifests use. Decoding refuses every field that
// is not here, so a misspelt one is found; new ones are added here first.
// https://kubernetes.io/docs/reference/kubernetes-api/

type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
}

type metadata struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type namespace struct {
	object `yaml:",inline"`
}

type configMap struct {
	object `yaml:",inline"`
	Data   map[string]string
}

type serviceAccount struct {
	object    `yaml:",inline"`
	Automount *bool `yaml:"automountServiceAccountToken"`
}

type deployment struct {
	object `yaml:",inline"`
	Spec   struct {
		Replicas             *int
		RevisionHistoryLimit int `yaml:"revisionHistoryLimit"`
		Strategy             struct {
			RollingUpdate struct {
				MaxUnavailable *int `yaml:"maxUnavailable"`
				MaxSurge       int  `yaml:"maxSurge"`
			} `yaml:"rollingUpdate"`
		}
		Selector selector
		Template struct {
			Metadata metadata
			Spec     podSpec
		}
	}
}

type podSpec struct {
	ServiceAccountName            string `yaml:"serviceAccountName"`
	AutomountServiceAccountToken  *bool  `yaml:"automountServiceAccountToken"`
	EnableServiceLinks            *bool  `yaml:"enableServiceLinks"`
	TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsNonRoot   bool `yaml:"runAsNonRoot"`
		RunAsUser      int  `yaml:"runAsUser"`
		RunAsGroup     int  `yaml:"runAsGroup"`
		FSGroup        int  `yaml:"fsGroup"`
		SeccompProfile struct {
			Type string
		} `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	TopologySpreadConstraints []struct {
		TopologyKey       string   `yaml:"topologyKey"`
		MaxSkew           int      `yaml:"maxSkew"`
		WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
		LabelSelector     selector `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
	Containers []container
	Volumes    []struct {
		Name   string
		Secret struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		}
	}
}

type container struct {
	Name, Image string
	Args        []string
	Env         []struct{ Name, Value string }
	EnvFrom     []struct {
		ConfigMapRef struct{ Name string } `yaml:"configMapRef"`
	} `yaml:"envFrom"`
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
	StartupProbe    *probe `yaml:"startupProbe"`
	ReadinessProbe  *probe `yaml:"readinessProbe"`
	LivenessProbe   *probe `yaml:"livenessProbe"`
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
}

// port is the number of a port; 0 if there is none of that name.
func (c container) port(name string) int {
	for _, p := range c.Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return 0
}

type probe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	TimeoutSeconds   int                         `yaml:"timeoutSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

type kubeService struct {
	object `yaml:",inline"`
	Spec   struct {
		Type     string
		Selector map[string]string
		Ports    []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
	}
}

type disruptionBudget struct {
	object `yaml:",inline"`
	Spec   struct {
		MinAvailable int `yaml:"minAvailable"`
		Selector     selector
	}
}

type autoscaler struct {
	object `yaml:",inline"`
	Spec   struct {
		ScaleTargetRef struct {
			APIVersion string `yaml:"apiVersion"`
			Kind, Name string
		} `yaml:"scaleTargetRef"`
		MinReplicas int `yaml:"minReplicas"`
		MaxReplicas int `yaml:"maxReplicas"`
		Metrics     []struct {
			Type     string
			External struct {
				Metric struct {
					Name     string
					Selector selector
				}
				Target struct {
					Type         string
					Value        string
					AverageValue string `yaml:"averageValue"`
				}
			}
		}
		Behavior struct {
			ScaleUp   scaling `yaml:"scaleUp"`
			ScaleDown scaling `yaml:"scaleDown"`
		}
	}
}

type scaling struct {
	StabilizationWindowSeconds int `yaml:"stabilizationWindowSeconds"`
	Policies                   []struct {
		Type          string
		Value         int
		PeriodSeconds int `yaml:"periodSeconds"`
	}
}

type podMonitoring struct {
	object `yaml:",inline"`
	Spec   struct {
		Selector  selector
		Endpoints []struct{ Port, Path, Interval string }
	}
}

type networkPolicy struct {
	object `yaml:",inline"`
	Spec   struct {
		PodSelector selector `yaml:"podSelector"`
		PolicyTypes []string `yaml:"policyTypes"`
		Ingress     []ingress
		Egress      []egress
	}
}

type ingress struct {
	From  []peer
	Ports []policyPort
}

type egress struct {
	To    []peer
	Ports []policyPort
}

type peer struct {
	PodSelector       *selector              `yaml:"podSelector"`
	NamespaceSelector *selector              `yaml:"namespaceSelector"`
	IPBlock           *struct{ CIDR string } `yaml:"ipBlock"`
}

type policyPort struct{ Port, Protocol string }
