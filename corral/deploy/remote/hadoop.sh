# What `up` does for Hadoop on a host, as root. This text follows that of do.sh, whose functions it calls.
HADOOP_HOME=/opt/corral-hadoop
HADOOP_CONF=/etc/corral-hadoop
HADOOP_JAVA=/usr/lib/jvm/default-java/bin/java

# install_hadoop DIGEST SERVICE...: the archive of a release that was sent; the services need a restart then.
install_hadoop() {
  received && note data $HADOOP_HOME && note data $HADOOP_HOME.new || return
  digest=$1
  shift
  for service; do unfinished "$service" || return; done
  read -r _ archive <list
  rm -rf $HADOOP_HOME.new && mkdir -p $HADOOP_HOME.new &&
    tar --no-same-owner --no-same-permissions --strip-components=1 -xf "$archive" -C $HADOOP_HOME.new || return
  [ -d $HADOOP_HOME.new/share/hadoop/common ] || { echo 'corral: no release of Hadoop'; return 1; }
  printf '%s\n' "$digest" >$HADOOP_HOME.new/release && sync -f $HADOOP_HOME.new/release && rm -rf $HADOOP_HOME &&
    mv $HADOOP_HOME.new $HADOOP_HOME || return
  cd / && rm -rf "$STATE/received"
}

# make_hadoop_data FILE USER: the account of the daemons, and their folders, which nobody else sees into. Containers run as that
# account: the folder above is root's, so that no container puts a link in the place of one of them.
make_hadoop_data() {
  if ! id "$2" >/dev/null 2>&1; then
    note users "$2" && useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$2" || return
  fi
  while read -r path; do
    case $path in /*) ;; *) continue ;; esac
    above=${path%/*}
    make_folder "${above%/*}" && note data "$above" && mkdir -p "$above" && chown root:root "$above" && chmod 755 "$above" || return
    [ ! -L "$path" ] || { echo "corral: $path is a link"; return 1; }
    mkdir -p "$path" && chown -h "$2:$2" "$path" && chmod 700 "$path" || return
  done <"$1"
  finished hadoop-data
}

# load_firewall UNIT: new rules take the place of old ones while the daemons run.
load_firewall() {
  systemctl daemon-reload && systemctl enable "$1" && systemctl reload-or-restart "$1" && systemctl is-active "$1" ||
    { journalctl -q --no-pager -n 10 -u "$1"; return 1; }
  finished "$1"
}

# restart_worker SERVICE: it is to be waited for.
restart_worker() { unfinished hadoop-worker && restart "$1"; }

# format_hdfs FILE USER: the folder of the NameNode is in FILE. One that is formatted stays as it is.
format_hdfs() {
  while read -r path; do
    case $path in /*) ;; *) continue ;; esac
    [ ! -e "$path/current/VERSION" ] || continue
    whole runuser -u "$2" -- env "HADOOP_CONF_DIR=$HADOOP_CONF" "$HADOOP_JAVA" "@$HADOOP_CONF/java.options" \
      org.apache.hadoop.hdfs.server.namenode.NameNode -format -nonInteractive || return
  done <"$1"
  finished hadoop-format
}

# make_hdfs_folders FILE URL USER: the folders of a file's lines (owner, mode and path), by the NameNode's REST interface.
make_hdfs_folders() {
  python3 -c '
import sys, time, urllib.parse, urllib.request
def ask(path, operation, **words):
    query = urllib.parse.urlencode({"op": operation, "user.name": sys.argv[3], **words})
    url = sys.argv[2] + "/webhdfs/v1" + urllib.parse.quote(path) + "?" + query
    urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=60).read()
rows = [line.split() for line in open(sys.argv[1]) if not line.startswith("#")]
end = time.monotonic() + 300
while True:
    try:
        for owner, mode, path in rows:
            ask(path, "MKDIRS")
            ask(path, "SETOWNER", owner=owner)
            ask(path, "SETPERMISSION", permission=mode)
        break
    except OSError as error:
        if time.monotonic() > end:
            sys.exit(f"corral: the NameNode takes no folders: {error}")
    time.sleep(2)
' "$@" && finished hadoop-folders
}

# join_hadoop MASTER ADDRESS: until the ResourceManager and the NameNode have this host.
join_hadoop() {
  python3 -c '
import json, sys, time, urllib.request
master, address = sys.argv[1:]
def ask(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read(64 * 1024 * 1024))
def missing():
    nodes = (ask(f"http://{master}:8088/ws/v1/cluster/nodes?states=RUNNING")["nodes"] or {}).get("node", [])
    if not any(node["id"] == f"{address}:8041" for node in nodes):
        return "the ResourceManager has no running NodeManager of this host"
    beans = ask(f"http://{master}:9870/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")["beans"]
    live = json.loads(beans[0]["LiveNodes"]) if beans else {}
    if not any(each.get("xferaddr") == f"{address}:9866" for each in live.values()):
        return "the NameNode has no live DataNode of this host"
end = time.monotonic() + 300
while True:
    try:
        why = missing()
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = f"{master} does not answer: {error}"
    if not why:
        break
    if time.monotonic() > end:
        sys.exit(f"corral: {why}")
    time.sleep(2)
' "$@" && finished hadoop-worker
}

# Stop the daemons, with the containers that outlive their NodeManager, and take the rules and the account away.
reset_hadoop() {
  for service in corral-nodemanager corral-datanode corral-resourcemanager corral-namenode corral-zookeeper \
    corral-hadoop-firewall; do
    [ ! -e "/etc/systemd/system/$service.service" ] || systemctl disable --now "$service" || return
  done
  if iptables --wait -S CORRAL-HADOOP >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    iptables --wait -S INPUT | sed -n 's/^-A \(.* -j CORRAL-HADOOP\)$/-D \1/p' | while read -r rule; do
      iptables --wait $rule || exit
    done && iptables --wait -F CORRAL-HADOOP && iptables --wait -X CORRAL-HADOOP || return
  fi
  [ ! -e "$STATE/users" ] || while read -r user; do
    ! id "$user" >/dev/null 2>&1 || { end_processes "$user" &&
      find /tmp /var/tmp -xdev -mindepth 1 -maxdepth 1 -user "$user" -exec rm -rf {} + && userdel "$user"; } || return
  done <"$STATE/users"
}

# end_processes USER: containers outlive their NodeManager.
end_processes() {
  for _ in $(seq 100); do
    pkill -KILL -u "$1" || return 0
    sleep 0.1
  done
  echo "processes of $1 do not end"
  return 1
}
