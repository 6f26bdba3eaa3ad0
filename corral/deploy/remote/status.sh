# Prints how the parts of the cluster on this machine are, as fields between tabs; it changes nothing. Runs as root.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL KUBECACHEDIR=/run/corral-kubectl
ADMIN=/etc/kubernetes/admin.conf

main() {
  printf 'corral-status begin 1\n'
  # A host that has Hadoop alone is no node.
  if [ ! -e /etc/systemd/system/corral-hadoop-firewall.service ] || [ -e /etc/systemd/system/kubelet.service ]; then
    unit containerd "$(containerd --version 2>/dev/null | awk '{ print $3 }')"
    unit kubelet "$(kubelet --version 2>/dev/null | awk '{ print $2 }')"
  fi
  [ ! -e /etc/systemd/system/corral-balancer.service ] ||
    unit corral-balancer "$(haproxy -v 2>/dev/null | awk 'NR == 1 { print $3 }')"
  for service in corral-hadoop-firewall corral-zookeeper corral-namenode corral-resourcemanager corral-datanode \
    corral-nodemanager; do
    [ ! -e "/etc/systemd/system/$service.service" ] || unit "$service" "$(hadoop_version)"
  done
  [ ! -e $ADMIN ] || cluster
  printf 'corral-status end 1\n'
}

# The version that the jar of a release has in its name.
hadoop_version() {
  for path in /opt/corral-hadoop/share/hadoop/common/hadoop-common-*.jar; do
    case $path in *-tests.jar | *'*'*) ;; *) path=${path##*/hadoop-common-} && printf '%s\n' "${path%.jar}" && return ;; esac
  done
}

unit() {
  since=$(systemctl show --property StateChangeTimestamp --value "$1" 2>/dev/null)
  [ -z "$since" ] || since=$(date --utc --date "$since" +%Y-%m-%dT%H:%M:%SZ)
  printf 'unit\t%s\t%s\t%s\t%s\n' "$1" "$(systemctl is-active "$1" 2>/dev/null)" "$since" "$2"
}

cluster() {
  nodes='{range .items[*]}node{"\t"}{.metadata.name}{"\t"}{range .status.conditions[?(@.type=="Ready")]}{.status}{"\t"}{.lastTransitionTime}{end}{"\t"}{.status.nodeInfo.kubeletVersion}{"\t"}{.spec.unschedulable}{"\n"}{end}'
  pods='{range .items[*]}pod{"\t"}{.metadata.namespace}/{.metadata.name}{"\t"}{.spec.nodeName}{"\t"}{.status.phase}{"\t"}{.status.containerStatuses[*].ready}{"\t"}{.status.startTime}{"\t"}{.spec.containers[0].image}{"\n"}{end}'
  ask get nodes -o jsonpath="$nodes" && ask -n kube-system get pods -o jsonpath="$pods" &&
    ask -n kube-flannel get pods -o jsonpath="$pods" &&
    ask get pods --all-namespaces -l app.kubernetes.io/name=corral -o jsonpath="$pods" || return
  printf 'certificates\t%s\n' "$(timeout 60 kubeadm certs check-expiration -o json 2>/dev/null | tr -d '\n\t')"
}

# What kubectl prints, or one line that says why not.
ask() {
  if answer=$(timeout 60 kubectl --kubeconfig $ADMIN --request-timeout=30s "$@" 2>&1); then
    [ -z "$answer" ] || printf '%s\n' "$answer"
  else
    printf 'silent\t%s\n' "$(printf '%s' "$answer" | tail -n 1 | tr '\t' ' ')"
    return 1
  fi
}

main </dev/null
