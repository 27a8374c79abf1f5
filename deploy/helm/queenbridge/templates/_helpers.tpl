{{- define "queenbridge.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "queenbridge.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "queenbridge.labels" -}}
{{ include "queenbridge.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "queenbridge.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "queenbridge.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "queenbridge.configMap" -}}
{{- default (include "queenbridge.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{/* The workloads of the layout, as JSON: name → {only, webhooks, stored, its values}. */}}
{{- define "queenbridge.workloads" -}}
{{- $v := .Values -}}
{{- $all := dict -}}
{{- if eq $v.layout "one" -}}
{{- $_ := set $all "bridge" (dict "only" "" "webhooks" true "stored" (or $v.spool.enabled $v.queen.embedded) "values" (mergeOverwrite (deepCopy $v.defaults) $v.bridge)) -}}
{{- else -}}
{{- $_ := set $all "ingress" (dict "only" "ingress" "webhooks" true "stored" $v.spool.enabled "values" (mergeOverwrite (deepCopy $v.defaults) $v.ingress)) -}}
{{- $_ := set $all "dispatch" (dict "only" "dispatch" "webhooks" false "stored" false "values" (mergeOverwrite (deepCopy $v.defaults) $v.dispatch)) -}}
{{- if $v.adminWorkload.enabled -}}
{{- $_ := set $all "admin" (dict "only" "admin" "webhooks" false "stored" false "values" (mergeOverwrite (deepCopy $v.defaults) $v.adminWorkload)) -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* Which workload serves the admin API. */}}
{{- define "queenbridge.adminWorkload" -}}
{{- if eq .Values.layout "one" -}}bridge{{- else if .Values.adminWorkload.enabled -}}admin{{- else -}}dispatch{{- end -}}
{{- end -}}

{{/* Combinations that cannot work are refused with what to do. */}}
{{- define "queenbridge.check" -}}
{{- $v := .Values -}}
{{- if not $v.admin.tokenSecret.name -}}
{{- fail "admin.tokenSecret.name is required: the admin listener is reachable from other pods. Make one with: kubectl create secret generic queenbridge-admin --from-literal=token=$(openssl rand -hex 32)" -}}
{{- end -}}
{{- if $v.queen.embedded -}}
{{- if $v.queen.urls -}}{{- fail "queen.embedded and queen.urls exclude each other" -}}{{- end -}}
{{- if ne $v.layout "one" -}}{{- fail "queen.embedded needs layout: one; ingress and dispatch in pods of their own meet in a Queen outside" -}}{{- end -}}
{{- $bridge := mergeOverwrite (deepCopy $v.defaults) $v.bridge -}}
{{- if or $bridge.autoscaling.enabled (gt (int $bridge.replicas) 1) -}}
{{- fail "queen.embedded is for one pod: set bridge.replicas: 1 and no autoscaling, or queen.urls" -}}
{{- end -}}
{{- else if not $v.queen.urls -}}
{{- fail "queen.urls is required: where Queen is, such as [http://queen:6632] (or queen.embedded: true with layout: one)" -}}
{{- end -}}
{{- if $v.spool.enabled -}}
{{- $webhooks := mergeOverwrite (deepCopy $v.defaults) (ternary $v.bridge $v.ingress (eq $v.layout "one")) -}}
{{- if $webhooks.autoscaling.enabled -}}
{{- fail "spool.enabled excludes autoscaling of what takes webhooks: a pod that is scaled away would leave accepted events on its volume" -}}
{{- end -}}
{{- end -}}
{{- if and $v.existingConfigMap (or $v.config.sources $v.config.targets $v.config.routes $v.config.queues) -}}
{{- fail "existingConfigMap and config exclude each other" -}}
{{- end -}}
{{- if and $v.http.enabled (not $v.http.host) -}}{{- fail "http.host is required with http.enabled" -}}{{- end -}}
{{- end -}}
