# Prints what `corral deploy` needs to know of this machine, as KEY=VALUE lines between two marks. It changes nothing.
# It runs by `sh -s`, so the whole of it is read before the first command, which then finds standard input closed.
main() {
  PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
  export PATH LC_ALL
  printf 'corral-facts begin 1\n'
  clock=$(date +%s.%N)
  case $clock in *[!0-9.]*) clock=$(date +%s) ;; esac
  say time "$clock"
  account
  system
  processors_and_disks
  network
  accelerators
  software
  printf 'corral-facts end 1\n'
}

say() { printf '%s=%s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
# Without a program: a host with accelerators has hundreds of devices.
line_of() { line='' && [ -r "$1" ] && { IFS= read -r line <"$1" || [ -n "$line" ]; } 2>/dev/null && printf '%s\n' "$line"; }
# Each file's digest and path. OpenSSL takes a fifth of the time of sha256sum, where the processor has instructions for it.
digests() { { openssl dgst -sha256 -r "$@" || sha256sum "$@"; } 2>/dev/null | sed -n 's/^\([0-9a-f]\{64\}\) [ *]\(.*\)/\1 \2/p'; }
# A driver's tool may hang for ever.
limited() { if has timeout; then timeout 10 "$@"; else "$@"; fi; }
setting_of() { sed -n "s/^$1=//p" /etc/os-release 2>/dev/null | head -n 1 | tr -d "\"'"; }

account() {
  say user "$(id -un)"
  if [ "$(id -u)" = 0 ]; then sudo=root
  elif ! has sudo; then sudo=missing
  elif limited sudo -n true 2>/dev/null; then sudo=free
  else sudo=refused; fi
  say sudo "$sudo"
  # The address at which this session arrived.
  # shellcheck disable=SC2086
  set -- ${SSH_CONNECTION:-}
  [ $# -ge 3 ] && say reached "$3"
}

system() {
  say hostname "$(uname -n)"
  say machine "$(line_of /etc/machine-id)"
  say os "$(setting_of ID) $(setting_of VERSION_ID)"
  say os_name "$(setting_of PRETTY_NAME)"
  say kernel "$(uname -r)"
  say arch "$(uname -m)"
  if [ -r /sys/fs/cgroup/cgroup.controllers ]; then
    say cgroup "v2 $(line_of /sys/fs/cgroup/cgroup.controllers)"
  else
    say cgroup "v1 $(awk '$4 == 1 && $1 !~ /^#/ { printf "%s ", $1 }' /proc/cgroups 2>/dev/null)"
  fi
  awk 'NR > 1 { print "swap=" $3 " " $1 }' /proc/swaps 2>/dev/null | head -n 32
  synchronized=
  has timedatectl && synchronized=$(limited timedatectl show -p NTPSynchronized --value 2>/dev/null)
  if [ "$synchronized" != yes ] && has chronyc; then
    limited chronyc -n tracking 2>/dev/null | grep -q '^Leap status *: *Normal' && synchronized=yes
  fi
  case $synchronized in yes | no) say ntp "$synchronized" ;; *) say ntp unknown ;; esac
}

processors_and_disks() {
  say cpus "$(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc)"
  say memory "$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)"
  # A dead network drive holds df up; busybox has no -l.
  { limited df -Pkl || limited df -Pk; } 2>/dev/null | awk 'NR > 1 && $6 ~ /^\// && NF == 6 { print "mount=" $2 " " $4 " " $6 }' | head -n 200
  for disk in /sys/block/*; do
    case ${disk##*/} in loop* | ram* | zram* | dm-* | sr* | fd* | '*') continue ;; esac
    say disk "$(line_of "$disk/size") ${disk##*/}"
  done | head -n 100
}

# tell_interface FOLDER: an interface of a pod may go while it is read, and is left out then.
tell_interface() {
  mtu=$(line_of "$1/mtu") state=$(line_of "$1/operstate")
  [ -z "$mtu" ] || [ -z "$state" ] || say interface "$mtu $state ${1##*/}"
}

# By getent's "hosts" a name of /etc/hosts that has no IPv6 address is asked of the name servers first, and those may be silent.
resolves() {
  for kind in ahostsv4 ahostsv6 hosts; do
    if has timeout; then timeout 3 getent $kind "$1"; else getent $kind "$1"; fi >/dev/null 2>&1 && return
  done
  return 1
}

network() {
  has ip && ip -o addr show 2>/dev/null | awk '{ print "address=" $2 " " $4 }' | head -n 200
  for interface in /sys/class/net/*; do tell_interface "$interface"; done | head -n 200
  awk 'NR > 1 && $2 == "00000000" { print "route=" $1 }' /proc/net/route 2>/dev/null | head -n 1
  awk '$1 == "nameserver" { print "nameserver=" $2 }' /etc/resolv.conf 2>/dev/null | head -n 8
  if resolves "$(uname -n)"; then say resolves yes; else say resolves no; fi
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk '$4 == "0A" { n = split($2, part, ":"); print "listens=" part[n] }' | sort -u | head -n 500
  for card in /sys/class/infiniband/*/ports/*; do
    [ -r "$card/state" ] || continue
    name=${card#/sys/class/infiniband/}
    say rdma "$(line_of "$card/state" | tr -d ' ') ${name%%/*}"
  done | head -n 64
}

accelerators() {
  for card in /sys/bus/pci/devices/*; do
    case $(line_of "$card/vendor") in 0x10de) vendor=nvidia ;; 0x1002) vendor=amd ;; 0x19e5) vendor=ascend ;; *) continue ;; esac
    case $vendor:$(line_of "$card/class") in
    nvidia:0x0300* | nvidia:0x0302* | amd:0x0380* | *:0x1200*) say card "$vendor" ;;
    esac
  done | head -n 1024
  version=$(sed -n 's/^NVRM version:.* \([0-9][0-9]*\.[0-9.]*\) .*/\1/p' /proc/driver/nvidia/version 2>/dev/null | head -n 1)
  if [ -n "$version" ]; then
    say driver "nvidia $version"
    has nvidia-smi && say usable "nvidia $(limited nvidia-smi -L 2>/dev/null | grep -c '^GPU ')"
  fi
  if [ -d /sys/module/amdgpu ]; then
    version=$(line_of /sys/module/amdgpu/version)
    say driver "amd ${version:-built-in}"
    say usable "amd $(cat /sys/class/kfd/kfd/topology/nodes/*/gpu_id 2>/dev/null | grep -vc '^0$')"
  fi
  version=$(sed -n 's/^Version=//p' /usr/local/Ascend/driver/version.info 2>/dev/null | head -n 1)
  if [ -n "$version" ]; then
    say driver "ascend $version"
    found=0
    for card in /dev/davinci[0-9]*; do [ -e "$card" ] && found=$((found + 1)); done
    say usable "ascend $found"
  fi
}

software() {
  for tool in containerd dockerd crio runc python3 systemctl modprobe conntrack iptables nft socat ethtool mount.nfs java \
    kubeadm kubelet kubectl; do
    has $tool && say tool $tool
  done
  has kubeadm && say version "kubeadm $(limited kubeadm version -o short 2>/dev/null)"
  has kubelet && say version "kubelet $(limited kubelet --version 2>/dev/null | awk '{ print $2 }')"
  has containerd && say version "containerd $(limited containerd --version 2>/dev/null | awk '{ print $3 }')"
  programs
  for path in /var/lib/corral/unfinished/*; do
    [ -e "$path" ] && say unfinished "${path##*/}"
  done | head -n 40
  for manager in apt-get dnf zypper; do has $manager && { say manager $manager; break; }; done
  has dpkg-query && dpkg-query -W -f '${Package} ${Status} ${Version}\n' conntrack ethtool iptables kmod socat haproxy \
    containerd nfs-common default-jre-headless python3 docker-registry 2>/dev/null | sed -n 's/^\([^ ]*\) install ok installed /package=\1 /p'
  has systemctl && units
  for module in overlay br_netfilter; do
    if [ $module = br_netfilter ] && [ -d /proc/sys/net/bridge ]; then say module "$module loaded"
    elif [ -d /sys/module/$module ] || grep -qw $module /proc/modules /proc/filesystems 2>/dev/null; then say module "$module loaded"
    elif has modprobe && modprobe -nq $module 2>/dev/null; then say module "$module available"
    else say module "$module missing"; fi
  done
  for name in net/ipv4/ip_forward net/bridge/bridge-nf-call-iptables fs/inotify/max_user_instances fs/inotify/max_user_watches; do
    [ -r /proc/sys/$name ] && say sysctl "$name $(cat /proc/sys/$name)"
  done
  later_settings
  barred_modules
  privileged env "PATH=$PATH" sh -c "$FILES"
}

programs() {
  set --
  for path in /usr/local/bin/containerd /usr/local/bin/containerd-shim-runc-v2 /usr/local/bin/ctr /usr/local/bin/runc \
    /usr/local/bin/kubeadm /usr/local/bin/kubectl /usr/local/bin/kubelet /usr/local/bin/helm /opt/cni/bin/*; do
    [ -f "$path" ] && [ -r "$path" ] && [ $# -lt 64 ] && set -- "$@" "$path"
  done
  [ $# = 0 ] || digests "$@" | while read -r sum path; do say program "$path $sum"; done
  [ -r /opt/corral-hadoop/release ] && say program "/opt/corral-hadoop/release $(line_of /opt/corral-hadoop/release)"
}

# One question to systemd for all units: their words are those of is-active and is-enabled. Drop-ins of all services of a
# system, in a folder service.d, are the system's own.
units() {
  limited systemctl show -p Id,ActiveState,UnitFileState,DropInPaths,NeedDaemonReload containerd.service docker.service \
    kubelet.service corral-balancer.service crio.service firewalld.service ufw.service corral-hadoop-firewall.service \
    corral-zookeeper.service corral-namenode.service corral-resourcemanager.service corral-datanode.service \
    corral-nodemanager.service corral-registry.service 2>/dev/null | awk -F = '
    function tell(  count, paths, at) {
      if (name && starts) {
        print "service=" name " " (runs ? runs : "unknown") " " starts
        if (name ~ /^(containerd|kubelet|corral-[a-z-]+)$/) {
          count = split(dropins, paths, " ")
          for (at = 1; at <= count && at <= 32; at++)
            if (index(paths[at], "/" name ".service.d/") && paths[at] ~ /^[!-~]+$/) print "dropin=" name " " paths[at]
          if (unread == "yes") print "unread=" name
        }
      }
      name = starts = runs = dropins = unread = ""
    }
    $1 == "Id" { name = $2; sub(/\.service$/, "", name) }
    $1 == "ActiveState" { runs = $2 }
    $1 == "UnitFileState" { starts = $2 }
    $1 == "DropInPaths" { dropins = substr($0, length($1) + 2) }
    $1 == "NeedDaemonReload" { unread = $2 }
    NF == 0 { tell() }
    END { tell() }'
}

# What the files of the system set at its next start. Of files of one name the first folder's counts, and of several values
# the one of the last name.
later_settings() {
  for folder in /etc /run /usr/local/lib /usr/lib /lib; do
    for path in $folder/sysctl.d/*.conf; do
      [ -r "$path" ] && printf '%s %s\n' "${path##*/}" "$path"
    done
  done | awk '!seen[$1]++' | sort | while read -r _ path; do head -c 65536 "$path"; echo; done | awk -F = '
    /^[ \t]*[#;]/ || !/=/ { next }
    {
      name = $1; value = substr($0, length($1) + 2)
      gsub(/[ \t]/, "", name); sub(/^-/, "", name); gsub(/^[ \t]+|[ \t\r]+$/, "", value); gsub(/[^ -~]/, "?", value)
      if (name !~ /\//) gsub(/\./, "/", name)
      if (name == "net/ipv4/ip_forward" || name == "net/bridge/bridge-nf-call-iptables") last[name] = substr(value, 1, 100)
    }
    END { for (name in last) print "later=" name " " last[name] }'
}

# Modules that modprobe is forbidden to load, or for which it runs another program.
barred_modules() {
  cat /etc/modprobe.d/*.conf /run/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf /lib/modprobe.d/*.conf 2>/dev/null |
    awk '($1 == "blacklist" || $1 == "install") && ($2 == "overlay" || $2 == "br_netfilter") && !seen[$2]++ { print "barred=" $2 " " $1 }'
}

# What only root may read on some hosts. Names of images that begin with sha256: are containerd's own.
# shellcheck disable=SC2016
FILES='
for path in /etc/kubernetes/admin.conf /etc/kubernetes/kubelet.conf /etc/kubernetes/manifests/kube-apiserver.yaml \
  /var/lib/etcd/member /etc/rancher/k3s/k3s.yaml /var/lib/rancher /etc/cni/net.d/10-flannel.conflist; do
  [ -e $path ] && printf "leftover=%s\n" $path
done
for path in /etc/modules-load.d/corral.conf /etc/sysctl.d/90-corral.conf /etc/containerd/config.toml \
  /etc/systemd/system/kubelet.service /etc/systemd/system/containerd.service /etc/kubernetes/corral.yaml \
  /etc/kubernetes/corral-network.yaml /etc/kubernetes/corral-data /etc/kubernetes/corral-values.yaml \
  /etc/kubernetes/corral-volumes /etc/kubernetes/corral-volumes.yaml \
  /etc/kubernetes/corral-balancer.cfg /etc/systemd/system/corral-balancer.service \
  /etc/cni/net.d/10-flannel.conflist /etc/fstab /etc/corral-hadoop/* /etc/systemd/system/corral-hadoop-firewall.service \
  /etc/systemd/system/corral-zookeeper.service /etc/systemd/system/corral-namenode.service \
  /etc/systemd/system/corral-resourcemanager.service /etc/systemd/system/corral-datanode.service \
  /etc/systemd/system/corral-nodemanager.service /etc/systemd/system/corral-registry.service \
  /etc/corral-registry/config.yml /etc/corral-registry/ca.crt /etc/corral-registry/tls.crt /etc/containerd/certs.d/*/hosts.toml; do
  case $path in *[!a-zA-Z0-9/._:-]*) continue ;; esac
  [ -r $path ] && command -v base64 >/dev/null && printf "file=%s %s\n" $path "$(head -c 16384 $path | base64 -w 0)"
done
for path in /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist /etc/cni/net.d/*.json; do
  [ -e "$path" ] && printf "cni=%s\n" "${path##*/}"
done | head -n 32
path=/etc/kubernetes/corral-portal.pem
[ -r $path ] && command -v base64 >/dev/null && printf "file=%s %s\n" $path \
  "$(sed -n "1{/^#/p};/^-----BEGIN CERTIFICATE-----/,/^-----END CERTIFICATE-----/p" $path | head -c 16384 | base64 -w 0)"
# Of the key of nodes its digest alone.
path=/etc/corral-registry/client.pem
[ ! -r $path ] || printf "program=%s %s\n" $path "$(sha256sum <$path | cut -d " " -f 1)"
folder=$(sed -n "s/^    rootdirectory: \"\(.*\)\"$/\1/p" /etc/corral-registry/config.yml 2>/dev/null)
[ -z "$folder" ] || ! cd "$folder/docker/registry/v2/repositories" || find . -path "*/_manifests/tags/*/current/link" |
  head -n 500 | while read -r path; do
    tag=${path%/current/link}
    name=${path%/_manifests/*}
    printf "held=%s:%s %s\n" "${name#./}" "${tag##*/}" "$(head -c 100 "$path")"
  done
# What kubeadm wrote, as it was written down then and as it is now.
list=/var/lib/corral/deploy/node-files
if [ -r $list ]; then
  pattern="^\([0-9a-f]\{64\}\)  \(/[!-~]\{1,300\}\)\$"
  sed -n "s|$pattern|written=\2 \1|p" $list | head -n 64
  {
    for path in /var/lib/kubelet/config.yaml /var/lib/kubelet/instance-config.yaml /etc/kubernetes/manifests/*; do
      [ -f "$path" ] && sha256sum "$path"
    done
    path=/var/lib/kubelet/kubeadm-flags.env
    [ ! -f $path ] || sed "s/ *--register-with-taints=[^ \"]*//" $path | sha256sum | sed "s|-\$|$path|"
  } | sed -n "s|$pattern|nodefile=\2 \1|p" | head -n 64
fi
sed -n "s/^ *server: */joined=/p" /etc/kubernetes/kubelet.conf | head -n 1
[ ! -S /run/containerd/containerd.sock ] || ! command -v ctr >/dev/null || ctr -n k8s.io images list |
  awk "NR > 1 && \$3 ~ /^sha256:/ && \$1 !~ /^sha256:|@/ { print \"image=\" \$1 \" \" \$3 }" | head -n 500
'

privileged() {
  if [ "$sudo" = free ]; then set -- sudo -n "$@"; fi
  if has timeout; then timeout 50 "$@"; else "$@"; fi 2>/dev/null
}

main </dev/null
