"""The shell texts that an OpenPAI task runs.

All of them run in any POSIX shell. `openpai_plugins` fills in `{...}`; `@DIR@` and `@USER@` are in files that the
runtime writes. Functions and variables begin with `pai_`, because the user's own steps run in the same shell.
"""

from __future__ import annotations

from typing import Final

SHELL_HEAD: Final = r"""# What runs in a task: the steps of its plug-ins, its command, what follows on success.
PAI_RUNTIME_DIR=${0%/*}
PAI_SHELL=$(command -v bash || command -v sh)
export PAI_RUNTIME_DIR
pai_say() { printf 'corral: %s\n' "$1" >&2; }
pai_end() { pai_say "$2 (exit code $1)"; exit "$1"; }
pai_have() { # PROGRAM PACKAGE: whether it is there, or can be installed into the image
  command -v "$1" >/dev/null 2>&1 && return 0
  [ -n "$PAI_IN_IMAGE" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$2"; } >/dev/null 2>&1
  command -v "$1" >/dev/null 2>&1
}"""

CLONE: Final = r"""pai_uri=$(cat <<'PAI_URI_ENDS_HERE'
{uri}
PAI_URI_ENDS_HERE
)
pai_folder={folder}
if [ -z "$pai_folder" ]; then
  pai_folder={default}
  if [ -z "$PAI_IN_IMAGE" ] || ! mkdir -p "${{pai_folder%/*}}" 2>/dev/null; then pai_folder=$PAI_WORK_DIR/code; fi
fi
PAI_CODE_FOLDER=$pai_folder; export PAI_CODE_FOLDER
if pai_have git git; then
  GIT_TERMINAL_PROMPT=0 git clone {options} -- "$pai_uri" "$pai_folder"
else
  pai_say "the plug-in git needs the program git in the image"; (exit 127)
fi
"""

TENSORBOARD: Final = r"""pai_host=0.0.0.0
[ -n "$PAI_IN_IMAGE" ] || pai_host=$PAI_CONTAINER_HOST_IP
if command -v tensorboard >/dev/null 2>&1; then
  pai_port="{port}"
  pai_logdir="{logdir}"
  ( tensorboard "--host=$pai_host" "--port=$pai_port" "$pai_logdir" ||
    tensorboard "--host=$pai_host" "--port=$pai_port" "{old}" ) >"$PAI_WORK_DIR/tensorboard.log" 2>&1 </dev/null &
  pai_say "TensorBoard is at http://$PAI_CONTAINER_HOST_IP:$pai_port (its log is tensorboard.log)"
else
  pai_say "the plug-in tensorboard needs the program tensorboard in the image"
  [ -z "{strict}" ]
fi
"""

SSH: Final = r"""pai_ssh=$PAI_RUNTIME_DIR/ssh
pai_sshd=
if [ ! -O "$pai_ssh/host_key" ]; then
  pai_ssh=$(mktemp -d) && cp "$PAI_RUNTIME_DIR"/ssh/* "$pai_ssh"/
fi
chmod 700 "$pai_ssh" && chmod 600 "$pai_ssh"/*
mkdir -p "$pai_ssh/bin" "$pai_ssh/seen"
pai_user=$(id -un 2>/dev/null || id -u)
for pai_file in sshd_config authorized_keys config; do
  [ ! -e "$pai_ssh/$pai_file" ] ||
    {{ sed -e "s|@DIR@|$pai_ssh|g" -e "s|@USER@|$pai_user|g" -e "s|@ATTEMPT@|$CORRAL_ATTEMPT|g" \
      "$pai_ssh/$pai_file" >"$pai_ssh/new" &&
      mv "$pai_ssh/new" "$pai_ssh/$pai_file"; }}
done
if [ -e "$pai_ssh/config" ]; then
  if [ -n "$PAI_IN_IMAGE" ]; then
    mkdir -p ~/.ssh && chmod 700 ~/.ssh && cat "$pai_ssh/config" >>~/.ssh/config && chmod 600 ~/.ssh/config
  else
    printf '\nMatch all\nInclude ~/.ssh/config\n' >>"$pai_ssh/config"
    for pai_program in ssh scp sftp; do
      pai_real=$(command -v $pai_program) || continue
      printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$pai_real" "$pai_ssh/config" >"$pai_ssh/bin/$pai_program"
      chmod 700 "$pai_ssh/bin/$pai_program"
    done
    PATH=$pai_ssh/bin:$PATH; export PATH
  fi
fi
PATH=$PATH:/usr/sbin:/sbin; export PATH
if [ -z "$PAI_CONTAINER_SSH_PORT" ]; then
  pai_say "the task has no port called ssh, so nobody can enter it by ssh"
elif {find}; then
  [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
  pai_listen=$PAI_CONTAINER_HOST_IP
  [ -z "$PAI_IN_IMAGE" ] && [ -z "{open}" ] || pai_listen=0.0.0.0
  "$(command -v sshd)" -D -f "$pai_ssh/sshd_config" -o "ListenAddress=$pai_listen" -p "$PAI_CONTAINER_SSH_PORT" \
    -E "$pai_ssh/sshd.log" </dev/null >/dev/null 2>&1 &
  pai_sshd=$!
elif [ -z "{quiet}" ]; then
  pai_say "the plug-in ssh needs the program sshd in the image; the task runs without it"
  [ -z "{strict}" ] || exit 1
fi
"""

SSH_BARRIER: Final = r"""pai_until=$(($(date +%s) + {seconds}))
pai_me=$PAI_CURRENT_TASK_ROLE_NAME-$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX
for pai_peer in $(cat "$pai_ssh/hosts"); do
  # A peer that has been here itself was there; it may have ended since.
  until [ -e "$pai_ssh/seen/$pai_peer" ] ||
    ssh -n -o BatchMode=yes -o ConnectTimeout=5 "$pai_peer" ': >"$PAI_SSH_SEEN/'"$pai_me"'"' 2>/dev/null; do
    if [ "$(date +%s)" -ge "$pai_until" ]; then
      pai_say "task $pai_peer could not be reached by ssh in {seconds} s"
      exit 249
    fi
    sleep 1
    kill -0 "$pai_sshd" 2>/dev/null || {{
      pai_say "sshd of this task has ended: $(cat "$pai_ssh/sshd.log" 2>/dev/null)"
      exit 249
    }}
  done
done
"""
