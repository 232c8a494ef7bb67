# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Shows progress: runs a long command with its output in a log file, and prints every few seconds what the command is
# doing.
#
# Sourced by tests/run.sh, apps/demo.sh, tests/starpu/build-starpu.sh and tests/install-packages.sh. The ticker waits
# with a timeout on a pipe without a writer, so no `sleep` is left behind when it ends.

if [[ -t 1 ]]; then
  progress_seconds=1
else
  progress_seconds=5
fi

# note TEXT: prints one line for people, with the seconds since the script began.
note() {
  printf '[%4d s] %s\n' "$SECONDS" "$*"
}

# fail TEXT: prints what went wrong and ends the script.
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# at_exit COMMAND: runs the command when the script ends. A bare EXIT trap is not enough. A background child that gets
# SIGTERM before bash has cleared the trap in it runs the trap, too (bash 5.2), and a ticker may be ended that early.
at_exit() {
  # shellcheck disable=SC2064 # the command is to be expanded now, the rest then
  trap "[[ \$BASHPID -ne \$\$ ]] || { $1; }" EXIT
}

# progress_last_line LOG: prints the last line of a log, cut to fit, without control characters.
progress_last_line() {
  tail -c 2000 "$1" 2>/dev/null | tr '\r' '\n' | tr -cd '[:print:]\n' | grep -v '^ *$' | tail -n 1 | cut -c 1-88 || true
}

# progress_ticker TITLE LOG: prints the state of the command until the ticker is killed, or its script has ended.
progress_ticker() {
  local title=$1 log=$2 begin=$SECONDS silent
  trap "exit 0" TERM
  exec {silent}<> <(:)
  while ! read -r -t "$progress_seconds" -u "$silent"; do
    kill -0 "$$" 2>/dev/null || return # the script itself has ended
    if [[ -t 1 ]]; then
      printf '\r\033[K  %s: %d s  %s' "$title" "$((SECONDS - begin))" "$(progress_last_line "$log")"
    else
      printf '  %s: %d s  %s\n' "$title" "$((SECONDS - begin))" "$(progress_last_line "$log")"
    fi
  done
}

# step TITLE LOG COMMAND...: runs the command in a subshell, output to LOG; shows progress, the time, and on failure the
# log's tail, which also goes to the file $failures, if set. Returns the command's exit code. If the command is a
# function, it must chain its commands with `&&`: bash ignores `set -e` in a command on the left of `||`, where steps
# often are.
step() {
  local title=$1 log=$2 begin=$SECONDS ticker status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  : >"$log"
  progress_ticker "$title" "$log" &
  ticker=$!
  ("$@") >>"$log" 2>&1 </dev/null || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  [[ ! -t 1 ]] || printf '\r\033[K'
  if [[ $status -eq 0 ]]; then
    note "$title: done in $((SECONDS - begin)) s"
  else
    note "$title: FAILED (exit code $status) after $((SECONDS - begin)) s; the end of $log:"
    tail -n 40 "$log" | sed 's/^/    | /' | tee -a "${failures:-/dev/null}"
  fi
  return "$status"
}
